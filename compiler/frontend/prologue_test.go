package frontend

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/onnx"
)

func TestProductsComputeWhatFeedsThem(t *testing.T) {
	dense := func() sketch {
		return newSketch().input("x", 1, 4, 5, 5).constant("w", 6, 4, 1, 1).constant("v", 6, 8, 1, 1).constant("k", 6, 4, 3, 3).constant("s", 4, 1, 1).constant("z", 8, 1, 1).
			node("p = MaxPool x", intsAttr("kernel_shape", 1, 1)).node("q = AveragePool p", intsAttr("kernel_shape", 1, 1))
	}
	for _, c := range []struct {
		name  string
		model *onnx.Model
		tasks []string
	}{
		{
			"normalisation and activation behind a concatenation", dense().node("c = Concat p q", intAttr("axis", 1)).node("m = Mul c z").node("a = Relu m").
				node("d = Conv a v").node("y = GlobalMaxPool d").output("y"),
			[]string{"1 maxpool 1x4x5x5 k1x1 -> 4", "1 avgpool 1x5x5x4 k1x1 -> 4", "1 mul+relu+conv2d 1x5x5x8 k1x1 -> 6", "1 globalmaxpool 1x5x5x6 -> 6"},
		},
		{
			"the scale of a squeeze-and-excitation", dense().node("g = GlobalMaxPool p").node("e = Sigmoid g").node("m = Mul p e").node("d = Conv m w").node("y = GlobalMaxPool d").output("y"),
			[]string{"1 maxpool 1x4x5x5 k1x1 -> 4", "1 globalmaxpool+sigmoid 1x5x5x4 -> 4", "1 mul+conv2d 1x5x5x4 k1x1 -> 6", "1 globalmaxpool 1x5x5x6 -> 6"},
		},
		{
			"not what another reads", dense().node("m = Mul x s").node("d = Conv m w").node("e = Conv m k", same3x3).node("h = Add d e").node("y = GlobalMaxPool h").output("y"),
			[]string{"1 mul 1x4x5x5", "1 conv2d 1x4x5x5 k3x3 -> 6", "1 conv2d+add 1x4x5x5 k1x1 -> 6", "1 globalmaxpool 1x5x5x6 -> 6"},
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
