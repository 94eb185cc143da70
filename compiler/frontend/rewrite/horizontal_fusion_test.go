package rewrite_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

func TestProductsOfOneOperandAreMerged(t *testing.T) {
	image := func() modeltest.Model {
		return modeltest.New().Input("x", 1, 8, 5, 5).Constant("w", 4, 8, 1, 1).Constant("v", 6, 8, 1, 1).Constant("b", 4).Constant("d", 6)
	}
	half := array.FromFloat32([]float32{0.5})
	for _, c := range []struct {
		name  string
		model *onnx.Model
		tasks []string
	}{
		{
			"queries, keys and values", modeltest.New().Input("x", 1, 6, 8).Constant("wq", 8, 4).Constant("wk", 8, 4).Constant("wv", 8, 3).
				Constant("bq", 4).Constant("bk", 4).Constant("bv", 3).
				Node("p = MatMul x wq").Node("r = MatMul x wk").Node("s = MatMul x wv").
				Node("q = Add bq p").Node("k = Add bk r").Node("v = Add bv s").
				Node("t = Transpose k", modeltest.Ints("perm", 0, 2, 1)).Node("m = MatMul q t").Node("a = Softmax m").Node("y = MatMul a v").Output("y"),
			[]string{"1 matmul+add 1x6x8 x 8x11 -> 1x6x11", "1 attention 1x6x4 x 1x4x6 -> 1x6x3"},
		},
		{
			"convolutions with bias, scale and activation", image().Known("half", half).Node("a = Conv x w b").Node("c = Conv x v d").
				Node("e = Mul a half").Node("f = Mul c half").Node("g = Relu e").Node("h = Relu f").
				Node("i = GlobalMaxPool g").Node("j = GlobalMaxPool h").Output("i", "j"),
			[]string{"1 conv2d+mul+relu 1x8x5x5 k1x1 -> 10", "1 globalmaxpool 1x5x5x4 -> 4", "1 globalmaxpool 1x5x5x6 -> 6"},
		},
		{
			"dense layers", modeltest.New().Input("x", 2, 8).Constant("w", 8, 4).Constant("v", 8, 3).Constant("b", 4).Constant("d", 1).
				Node("a = Gemm x w b").Node("c = Gemm x v d").Node("e = Softmax a").Node("f = Softmax c").Output("e", "f"),
			[]string{"1 dense 2x8 -> 7", "1 softmax 2x4 axes [1] -> 2x4", "1 softmax 2x3 axes [1] -> 2x3"},
		},
		{
			"not with different activations", image().Node("a = Conv x w b").Node("c = Conv x v d").
				Node("g = Relu a").Node("h = Sigmoid c").Node("i = GlobalMaxPool g").Node("j = GlobalMaxPool h").Output("i", "j"),
			[]string{"1 conv2d+relu 1x8x5x5 k1x1 -> 4", "1 conv2d+sigmoid 1x8x5x5 k1x1 -> 6", "1 globalmaxpool 1x5x5x4 -> 4", "1 globalmaxpool 1x5x5x6 -> 6"},
		},
		{
			"not with different bounds", image().Known("one", array.FromFloat32([]float32{1})).Known("two", array.FromFloat32([]float32{2})).
				Node("a = Conv x w b").Node("c = Conv x v d").
				Node("g = Clip a _ one").Node("h = Clip c _ two").Node("i = GlobalMaxPool g").Node("j = GlobalMaxPool h").Output("i", "j"),
			[]string{"1 conv2d+clip 1x8x5x5 k1x1 -> 4", "1 conv2d+clip 1x8x5x5 k1x1 -> 6", "1 globalmaxpool 1x5x5x4 -> 4", "1 globalmaxpool 1x5x5x6 -> 6"},
		},
		{
			"not when one is written into a concatenation", image().Node("a = Conv x w b").Node("c = Conv x v d").
				Node("m = MaxPool c", modeltest.Ints("kernel_shape", 1, 1)).Node("k = Concat a m", modeltest.Int("axis", 1)).Node("y = GlobalMaxPool k").Output("y"),
			[]string{"1 conv2d 1x8x5x5 k1x1 -> 4", "1 conv2d 1x8x5x5 k1x1 -> 6", "1 maxpool 1x5x5x6 k1x1 -> 6", "1 globalmaxpool 1x5x5x10 -> 10"},
		},
		{
			"not when one takes in a residual addition", image().Constant("u", 8, 8, 1, 1).Node("a = Conv x w b").Node("c = Conv x u").Node("s = Add c x").
				Node("i = GlobalMaxPool a").Node("j = GlobalMaxPool s").Output("i", "j"),
			[]string{"1 conv2d 1x8x5x5 k1x1 -> 4", "1 conv2d+add 1x8x5x5 k1x1 -> 8", "1 globalmaxpool 1x5x5x4 -> 4", "1 globalmaxpool 1x5x5x8 -> 8"},
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
