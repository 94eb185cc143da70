package rewrite_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// TestBatchNormsFold compares a model whose statistics are constants, which fold, with one that gets them as inputs.
func TestBatchNormsFold(t *testing.T) {
	gemm := func(s modeltest.Model) modeltest.Model { return s.Constant("w", 6, 4).Node("c = Gemm x w _") }
	for _, c := range []struct {
		name  string
		base  func() modeltest.Model
		tasks []string
	}{
		{"into a convolution", func() modeltest.Model {
			return modeltest.New().Input("x", 1, 6, 3, 3).Constant("w", 4, 6, 1, 1).Constant("b", 4).Node("c = Conv x w b")
		}, []string{"1 conv2d+copy 1x6x3x3 k1x1 -> 4"}},
		{"into a depthwise convolution without bias", func() modeltest.Model {
			return modeltest.New().Input("x", 1, 4, 3, 3).Constant("w", 4, 1, 2, 2).Node("c = Conv x w", modeltest.Int("group", 4))
		}, []string{"1 conv2d+copy 1x4x3x3 k2x2 depthwise -> 4"}},
		{"into a dense layer", func() modeltest.Model { return gemm(modeltest.New().Input("x", 2, 6)) }, []string{"1 dense 2x6 -> 4"}},
		{"into nothing", func() modeltest.Model {
			return modeltest.New().Input("x", 1, 4, 3, 3).Node("c = MaxPool x", modeltest.Ints("kernel_shape", 1, 1))
		}, []string{"1 maxpool+mul+add+copy 1x4x3x3 k1x1 -> 4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			params := []string{"scale", "bias", "mean", "var"}
			folded, plain := c.base(), c.base()
			for k, name := range params {
				a := modeltest.Wave(1, 0.5, 4)
				a.SetFloat(0, 0.3+float64(k))
				folded.Known(name, a)
				plain.Input(name, 4)
			}
			const node = "y = BatchNormalization c scale bias mean var"
			p, q := modeltest.Import(t, folded.Node(node).Output("y")), modeltest.Import(t, plain.Node(node).Output("y"))
			modeltest.CheckTasks(t, p, c.tasks...)
			inputs := map[string]*array.Array{"x": modeltest.Wave(0, 1, p.Values[p.Inputs[0]].Shape...)}
			got, err := evaluate.Program(p, inputs)
			if err != nil {
				t.Fatal(err)
			}
			for _, tensor := range folded.Graph.Initializers {
				inputs[tensor.Name] = tensor.Value
			}
			want, err := evaluate.Program(q, inputs)
			if err != nil {
				t.Fatal(err)
			}
			if err := modeltest.Compare(got["y"], want["y"]); err != nil {
				t.Error(err)
			}
		})
	}
}
