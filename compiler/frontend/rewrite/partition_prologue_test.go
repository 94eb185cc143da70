package rewrite_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

func TestProductsComputeWhatFeedsThem(t *testing.T) {
	dense := func() modeltest.Model {
		return modeltest.New().Input("x", 1, 4, 5, 5).Constant("w", 6, 4, 1, 1).Constant("v", 6, 8, 1, 1).Constant("k", 6, 4, 3, 3).Constant("s", 4, 1, 1).Constant("z", 8, 1, 1).
			Node("p = MaxPool x", modeltest.Ints("kernel_shape", 1, 1)).Node("q = AveragePool p", modeltest.Ints("kernel_shape", 1, 1))
	}
	for _, c := range []struct {
		name  string
		model *onnx.Model
		tasks []string
	}{
		{
			"normalisation and activation behind a concatenation", dense().Node("c = Concat p q", modeltest.Int("axis", 1)).Node("m = Mul c z").Node("a = Relu m").
				Node("d = Conv a v").Node("y = GlobalMaxPool d").Output("y"),
			[]string{"1 maxpool 1x4x5x5 k1x1 -> 4", "1 avgpool 1x5x5x4 k1x1 -> 4", "1 mul+relu+conv2d 1x5x5x8 k1x1 -> 6", "1 globalmaxpool 1x5x5x6 -> 6"},
		},
		{
			"the scale of a squeeze-and-excitation", dense().Node("g = GlobalMaxPool p").Node("e = Sigmoid g").Node("m = Mul p e").Node("d = Conv m w").Node("y = GlobalMaxPool d").Output("y"),
			[]string{"1 maxpool 1x4x5x5 k1x1 -> 4", "1 globalmaxpool+sigmoid 1x5x5x4 -> 4", "1 mul+conv2d 1x5x5x4 k1x1 -> 6", "1 globalmaxpool 1x5x5x6 -> 6"},
		},
		{
			"a dequantisation, of what is read once", dense().Known("s8", modeltest.Wave(0.02, 0, 1)).Node("k8 = QuantizeLinear p s8").Node("e = DequantizeLinear k8 s8").
				Node("g = GlobalAveragePool e").Node("h = Relu e").Node("y = Add h g").Output("y"),
			[]string{"1 maxpool+quantize 1x4x5x5 k1x1 -> 4", "1 dequantize+globalavgpool 1x5x5x4 -> 4", "1 dequantize+relu+add+copy 1x5x5x4"},
		},
		{
			"a dequantisation, of what is read for a row", dense().Known("s8", modeltest.Wave(0.02, 0, 1)).Constant("g", 5).Node("k8 = QuantizeLinear p s8").
				Node("e = DequantizeLinear k8 s8").Node("a = Softmax e").Node("k9 = QuantizeLinear q s8").Node("f = DequantizeLinear k9 s8").
				Node("b = LayerNormalization f g").Node("y = Concat a b", modeltest.Int("axis", 1)).Output("k8", "k9", "y"),
			[]string{"1 maxpool+quantize 1x4x5x5 k1x1 -> 4", "1 dequantize+softmax 1x5x5x4 axes [3] -> 1x5x5x4", "1 avgpool+quantize 1x5x5x4 k1x1 -> 4",
				"1 dequantize+layernorm 1x5x5x4 -> 1x5x5x4", "2 copy 1x5x5x4", "1 copy 1x5x5x8"},
		},
		{
			"not what another reads", dense().Node("m = Mul x s").Node("d = Conv m w").Node("e = Conv m k", modeltest.Same3x3).Node("h = Add d e").Node("y = GlobalMaxPool h").Output("y"),
			[]string{"1 mul 1x4x5x5", "1 conv2d 1x4x5x5 k3x3 -> 6", "1 conv2d+add 1x4x5x5 k1x1 -> 6", "1 globalmaxpool 1x5x5x6 -> 6"},
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
