package rewrite_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

func TestKernelsStoreResultsOnTheWay(t *testing.T) {
	block := func() modeltest.Model {
		return modeltest.New().Input("x", 1, 4, 5, 5).Constant("w", 4, 4, 1, 1).Constant("v", 4, 4, 3, 3).Constant("s", 4, 1, 1).
			Node("p = MaxPool x", modeltest.Ints("kernel_shape", 1, 1))
	}
	for _, c := range []struct {
		name  string
		model *onnx.Model
		tasks []string
	}{
		{
			"the sum of a residual block and its activation", block().Node("c = Conv p w").Node("r = Add c p").Node("m = Mul r s").Node("a = Relu m").
				Node("d = Conv a v", modeltest.Same3x3).Node("e = Add d r").Node("y = GlobalMaxPool e").Output("y"),
			[]string{"1 maxpool 1x4x5x5 k1x1 -> 4", "1 conv2d+add+mul+relu 1x5x5x4 k1x1 -> 4", "1 conv2d+add 1x5x5x4 k3x3 -> 4", "1 globalmaxpool 1x5x5x4 -> 4"},
		},
		{
			"not what waits for a kernel that waits for the result", block().Node("c = Conv p w").Node("d = Conv c v", modeltest.Same3x3).Node("q = MaxPool d", modeltest.Ints("kernel_shape", 1, 1)).
				Node("e = Mul c q").Node("y = GlobalMaxPool e").Output("y"),
			[]string{"1 maxpool 1x4x5x5 k1x1 -> 4", "1 conv2d 1x5x5x4 k1x1 -> 4", "1 conv2d 1x5x5x4 k3x3 -> 4", "1 maxpool+mul 1x5x5x4 k1x1 -> 4", "1 globalmaxpool 1x5x5x4 -> 4"},
		},
		{
			"an element-wise operator with two readers", modeltest.New().Input("x", 3, 4).Node("a = Exp x").Node("b = Relu a").Node("c = Softmax a").Node("y = Add b c").Output("y"),
			[]string{"1 exp+relu 3x4", "1 softmax+add 3x4 axes [1] -> 3x4"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := modeltest.Import(t, c.model)
			modeltest.CheckTasks(t, p, c.tasks...)
			modeltest.Check(t, p)
			modeltest.CheckMeaning(t, c.model, p)
		})
	}
}
