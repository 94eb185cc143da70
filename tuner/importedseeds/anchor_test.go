package importedseeds

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/modelzoo"
)

// anchors returns the anchors of a built-in model's tasks by name.
func anchors(t *testing.T, name string) map[string]string {
	t.Helper()
	m, err := modelzoo.Build(name, modelzoo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := frontend.Import(m, frontend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, task := range p.Tasks {
		all[task.Name], _ = Anchor(task.Workload)
	}
	return all
}

func TestOperatorIsTheAnchorOfItsTasks(t *testing.T) {
	window := func(stride, pad, groups int64) Window {
		return Window{Strides: [2]int64{stride, stride}, Dilations: [2]int64{1, 1}, Pads: [4]int64{pad, pad, pad, pad}, Groups: groups}
	}
	made := func(o *Operator, err error) *Operator {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	resnet, mobilenet, mlp := anchors(t, "resnet-18"), anchors(t, "mobilenet-v2"), anchors(t, "mlp")
	for _, c := range []struct {
		tasks    map[string]string
		operator *Operator
		names    []string
	}{
		{resnet, made(Convolution([]int64{1, 64, 56, 56}, []int64{64, 64, 3, 3}, window(1, 1, 1))),
			[]string{"conv2d+relu 1x56x56x64 k3x3 -> 64", "conv2d+add+relu 1x56x56x64 k3x3 -> 64"}},
		{resnet, made(Convolution([]int64{1, 64, 56, 56}, []int64{128, 64, 3, 3}, window(2, 1, 1))), []string{"conv2d+relu 1x56x56x64 k3x3 s2x2 -> 128"}},
		{resnet, made(Convolution([]int64{1, 128, 28, 28}, []int64{256, 128, 1, 1}, window(2, 0, 1))), []string{"conv2d 1x28x28x128 k1x1 s2x2 -> 256"}},
		{resnet, made(Convolution([]int64{1, 3, 224, 224}, []int64{64, 3, 7, 7}, window(2, 3, 1))), []string{"conv2d+relu 1x3x224x224 k7x7 s2x2 -> 64"}},
		{resnet, made(Dense(1, 1000, 512)), []string{"dense 1x512 -> 1000"}},
		{mlp, made(Dense(1, 256, 784)), []string{"dense+relu 1x784 -> 256"}},
		{mobilenet, made(Convolution([]int64{1, 96, 112, 112}, []int64{96, 1, 3, 3}, window(2, 1, 96))), []string{"conv2d+clip 1x112x112x96 k3x3 s2x2 depthwise -> 96"}},
		{mobilenet, made(Convolution([]int64{1, 32, 28, 28}, []int64{192, 32, 1, 1}, window(1, 0, 1))), []string{"conv2d+clip 1x28x28x32 k1x1 -> 192"}},
	} {
		found, err := c.operator.Anchors()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range c.names {
			if a, known := c.tasks[name]; !known || a != found[0] && a != found[len(found)-1] {
				t.Errorf("%v is not the anchor of %s (known: %v)", c.operator, name, known)
			}
		}
		for name, a := range c.tasks {
			same := false
			for _, want := range c.names {
				same = same || want == name
			}
			if (a == found[0] || a == found[len(found)-1]) && !same {
				t.Errorf("%v is the anchor of %s as well", c.operator, name)
			}
		}
	}
}
