package rewrite_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

func TestPartition(t *testing.T) {
	for _, c := range []struct {
		name  string
		model *onnx.Model
		want  []string
	}{
		{
			"a convolution takes bias, activation and residual addition",
			modeltest.New().Input("x", 1, 8, 5, 5).Constant("w", 8, 8, 3, 3).Constant("b", 8).
				Node("c = Conv x w b", modeltest.Same3x3).Node("s = Add c x").Node("y = Relu s").Output("y"),
			[]string{"1 conv2d+add+relu+copy 1x8x5x5 k3x3 -> 8"},
		},
		{
			"equal layers are one task",
			modeltest.New().Input("x", 1, 8, 5, 5).Constant("w", 8, 8, 3, 3).Constant("v", 8, 8, 3, 3).
				Node("m = MaxPool x", modeltest.Ints("kernel_shape", 1, 1)).Node("a = Conv m w", modeltest.Same3x3).Node("r = Relu a").
				Node("b = Conv r v", modeltest.Same3x3).Node("s = Relu b").Node("g = GlobalAveragePool s").Output("g"),
			[]string{"1 maxpool 1x8x5x5 k1x1 -> 8", "2 conv2d+relu 1x5x5x8 k3x3 -> 8", "1 globalavgpool 1x5x5x8 -> 8"},
		},
		{
			"where two convolutions meet, the first operand's takes the addition",
			modeltest.New().Input("x", 1, 8, 5, 5).Constant("w", 8, 8, 1, 1).Constant("v", 8, 8, 3, 3).
				Node("a = Conv x w").Node("b = Conv x v", modeltest.Same3x3).Node("s = Add a b").Node("y = GlobalMaxPool s").Output("y"),
			[]string{"1 conv2d 1x8x5x5 k3x3 -> 8", "1 conv2d+add 1x8x5x5 k1x1 -> 8", "1 globalmaxpool 1x5x5x8 -> 8"},
		},
		{
			"a value used twice on the way to one result stays inside",
			modeltest.New().Input("x", 2, 4).Constant("w", 4, 4).
				Node("a = MatMul x w").Node("g = Sigmoid a").Node("y = Mul a g").Output("y"),
			[]string{"1 matmul+sigmoid+mul 2x4 x 4x4 -> 2x4"},
		},
		{
			"a value with another reader is stored on the way",
			modeltest.New().Input("x", 2, 4).Constant("w", 4, 4).
				Node("a = MatMul x w").Node("g = Relu a").Node("y = Softmax a").Output("g", "y"),
			[]string{"1 matmul+relu 2x4 x 4x4 -> 2x4", "1 softmax 2x4 axes [1] -> 2x4"},
		},
		{
			"an output is stored on the way",
			modeltest.New().Input("x", 2, 4).Constant("w", 4, 4).Node("a = MatMul x w").Node("y = Relu a").Output("a", "y"),
			[]string{"1 matmul+relu 2x4 x 4x4 -> 2x4"},
		},
		{
			"flattening one pixel is an alias, and dropout nothing",
			modeltest.New().Input("x", 1, 8, 5, 5).Constant("w", 10, 8).Node("g = GlobalAveragePool x").
				Node("f = Flatten g").Node("d = Dropout f").Node("y = Gemm d w", modeltest.Int("transB", 1)).Output("y"),
			[]string{"1 globalavgpool 1x8x5x5 -> 8", "1 dense 1x8 -> 10"},
		},
		{
			"flattening more is a store in another order",
			modeltest.New().Input("x", 1, 8, 4, 4).Constant("w", 10, 32).Node("p = MaxPool x", modeltest.Ints("kernel_shape", 2, 2), modeltest.Ints("strides", 2, 2)).
				Node("f = Flatten p").Node("y = Gemm f w", modeltest.Int("transB", 1)).Output("y"),
			[]string{"1 maxpool+copy 1x8x4x4 k2x2 s2x2 -> 8", "1 dense 1x32 -> 10"},
		},
		{
			"transpositions between heads cost nothing",
			modeltest.New().Input("x", 1, 6, 8).Constant("w", 8, 8).Node("q = MatMul x w").
				Known("heads", array.FromInt64([]int64{1, 6, 2, 4}, 4)).Node("h = Reshape q heads").
				Node("a = Transpose h", modeltest.Ints("perm", 0, 2, 1, 3)).Node("b = Transpose h", modeltest.Ints("perm", 0, 2, 3, 1)).
				Node("y = MatMul a b").Output("y"),
			[]string{"1 matmul 1x6x8 x 8x8 -> 1x6x8", "1 matmul 1x6x2x4 x 1x2x4x6 -> 1x2x6x6"},
		},
		{
			"an addition behind a reshape by units and a transposition", modeltest.New().Input("x", 6, 8).Input("r", 1, 6, 4).Constant("w", 8, 4).
				Node("d = Gemm x w").Known("shape", array.FromInt64([]int64{6, 1, 4}, 3)).Node("u = Reshape d shape").
				Node("t = Transpose u", modeltest.Ints("perm", 1, 0, 2)).Node("s = Add r t").Node("y = Softmax s").Output("y"),
			[]string{"1 matmul+transpose+add 6x1x8 x 8x4 -> 6x1x4", "1 softmax 1x6x4 axes [2] -> 1x6x4"},
		},
		{
			"a pad joins the convolution",
			modeltest.New().Input("x", 1, 8, 5, 5).Constant("w", 8, 8, 3, 3).Known("pads", array.FromInt64([]int64{0, 0, 0, 0, 0, 0, 1, 1}, 8)).
				Node("p = Pad x pads").Node("c = Conv p w").Node("y = GlobalMaxPool c").Output("y"),
			[]string{"1 conv2d 1x8x5x5 k3x3 -> 8", "1 globalmaxpool 1x4x4x8 -> 8"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := modeltest.Import(t, c.model)
			modeltest.CheckTasks(t, p, c.want...)
			modeltest.Check(t, p)
			modeltest.Run(t, p)
		})
	}
}
