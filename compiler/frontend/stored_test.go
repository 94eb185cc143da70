package frontend

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/onnx"
)

func TestKernelsStoreResultsOnTheWay(t *testing.T) {
	block := func() sketch {
		return newSketch().input("x", 1, 4, 5, 5).constant("w", 4, 4, 1, 1).constant("v", 4, 4, 3, 3).constant("s", 4, 1, 1).
			node("p = MaxPool x", intsAttr("kernel_shape", 1, 1))
	}
	for _, c := range []struct {
		name  string
		model *onnx.Model
		tasks []string
	}{
		{
			"the sum of a residual block and its activation", block().node("c = Conv p w").node("r = Add c p").node("m = Mul r s").node("a = Relu m").
				node("d = Conv a v", same3x3).node("e = Add d r").node("y = GlobalMaxPool e").output("y"),
			[]string{"1 maxpool 1x4x5x5 k1x1 -> 4", "1 conv2d+add+mul+relu 1x5x5x4 k1x1 -> 4", "1 conv2d+add 1x5x5x4 k3x3 -> 4", "1 globalmaxpool 1x5x5x4 -> 4"},
		},
		{
			"not what waits for a kernel that waits for the result", block().node("c = Conv p w").node("d = Conv c v", same3x3).node("q = MaxPool d", intsAttr("kernel_shape", 1, 1)).
				node("e = Mul c q").node("y = GlobalMaxPool e").output("y"),
			[]string{"1 maxpool 1x4x5x5 k1x1 -> 4", "1 conv2d 1x5x5x4 k1x1 -> 4", "1 conv2d 1x5x5x4 k3x3 -> 4", "1 maxpool+mul 1x5x5x4 k1x1 -> 4", "1 globalmaxpool 1x5x5x4 -> 4"},
		},
		{
			"an element-wise operator with two readers", newSketch().input("x", 3, 4).node("a = Exp x").node("b = Relu a").node("c = Softmax a").node("y = Add b c").output("y"),
			[]string{"1 exp+relu 3x4", "1 softmax+add 3x4 axes [1] -> 3x4"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := mustImport(t, c.model)
			checkTasks(t, p, c.tasks...)
			checkProgram(t, p)
			checkMeaning(t, c.model, p)
		})
	}
}
