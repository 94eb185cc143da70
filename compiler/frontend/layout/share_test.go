package layout_test

import (
	"reflect"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// parts lists how the arguments of all calls lie in larger values, where they do.
func parts(p *program.Program) []string {
	var list []string
	for _, c := range p.Calls {
		for _, v := range c.Args {
			if p.Values[v].Strides != nil {
				list = append(list, p.Values[v].Name)
			}
		}
	}
	return list
}

func TestMovingElementsCostsNoPass(t *testing.T) {
	axis := func(k int64) *onnx.Attribute { return modeltest.Int("axis", k) }
	heads := array.FromInt64([]int64{1, 6, 2, 4}, 4)
	pooled := func() modeltest.Model {
		return modeltest.New().Input("x", 1, 8, 5, 5).Constant("w", 4, 8, 1, 1).Constant("v", 6, 8, 3, 3).
			Node("p = MaxPool x", modeltest.Ints("kernel_shape", 1, 1))
	}
	end := func(s modeltest.Model) *onnx.Model { return s.Node("g = GlobalMaxPool y").Output("g") }
	for _, c := range []struct {
		name  string
		model *onnx.Model
		tasks []string
		parts []string
	}{
		{
			"branches write into the concatenation", end(pooled().Node("a = Conv p w").Node("r = Relu a").Node("b = Conv p v", modeltest.Same3x3).
				Node("y = Concat r b", axis(1))),
			[]string{"1 maxpool 1x8x5x5 k1x1 -> 8", "1 conv2d+relu 1x5x5x8 k1x1 -> 4", "1 conv2d 1x5x5x8 k3x3 -> 6", "1 globalmaxpool 1x5x5x10 -> 10"},
			[]string{"r", "b"},
		},
		{
			"along rows, parts have no gaps but may begin anywhere", end(pooled().Node("a = Conv p w").Node("b = AveragePool a", modeltest.Ints("kernel_shape", 1, 1)).
				Node("y = Concat a b", axis(2))),
			[]string{"1 maxpool 1x8x5x5 k1x1 -> 8", "1 conv2d 1x5x5x8 k1x1 -> 4", "1 avgpool 1x5x5x4 k1x1 -> 4", "1 globalmaxpool 1x10x5x4 -> 4"},
			nil,
		},
		{
			"a concatenation inside another", end(pooled().Node("a = Conv p w").Node("b = Conv p v", modeltest.Same3x3).Node("i = Concat a b", axis(1)).
				Node("c = MaxPool i", modeltest.Ints("kernel_shape", 1, 1)).Node("y = Concat c i", axis(1))),
			[]string{"1 maxpool 1x8x5x5 k1x1 -> 8", "1 conv2d 1x5x5x8 k1x1 -> 4", "1 conv2d 1x5x5x8 k3x3 -> 6", "1 maxpool 1x5x5x10 k1x1 -> 10", "1 globalmaxpool 1x5x5x20 -> 20"},
			[]string{"a", "b", "i", "c"},
		},
		{
			"concatenations that begin alike share a buffer", end(pooled().Node("a = Conv p w").Node("b = Conv p v", modeltest.Same3x3).Node("i = Concat a b", axis(1)).
				Node("c = MaxPool i", modeltest.Ints("kernel_shape", 1, 1)).Node("y = Concat a b c", axis(1))),
			[]string{"1 maxpool 1x8x5x5 k1x1 -> 8", "1 conv2d 1x5x5x8 k1x1 -> 4", "1 conv2d 1x5x5x8 k3x3 -> 6", "1 maxpool 1x5x5x10 k1x1 -> 10", "1 globalmaxpool 1x5x5x20 -> 20"},
			[]string{"a", "b", "i", "c"},
		},
		{
			"a value in two concatenations is stored twice", end(pooled().Node("a = Conv p w").Node("b = Conv p v", modeltest.Same3x3).Node("i = Concat b a", axis(1)).
				Node("c = MaxPool i", modeltest.Ints("kernel_shape", 1, 1)).Node("y = Concat a c", axis(1))),
			[]string{"1 maxpool 1x8x5x5 k1x1 -> 8", "1 conv2d+copy 1x5x5x8 k1x1 -> 4", "1 conv2d 1x5x5x8 k3x3 -> 6", "1 maxpool 1x5x5x10 k1x1 -> 10", "1 globalmaxpool 1x5x5x14 -> 14"},
			[]string{"a", "a.part", "b", "c"},
		},
		{
			"what arrives from outside is copied", modeltest.New().Input("x", 2, 3).Constant("w", 3, 4).Node("a = MatMul x w").Node("c = Concat x a", axis(1)).
				Node("y = Softmax c").Output("y"),
			[]string{"1 matmul 2x3 x 3x4 -> 2x4", "1 copy 2x3", "1 softmax 2x7 axes [1] -> 2x7"},
			[]string{"a", "x.part"},
		},
		{
			"nothing to compute stays one kernel", modeltest.New().Input("x", 2, 3).Input("z", 2, 5).Node("c = Concat x z", axis(1)).Node("y = Relu c").Output("y"),
			[]string{"1 concat+relu 2x3"}, nil,
		},
		{
			"an output is no part", modeltest.New().Input("x", 2, 3).Constant("w", 3, 4).Node("a = MatMul x w").Node("b = Relu x").Node("c = Concat a b", axis(1)).
				Node("y = Softmax c").Output("y", "a"),
			[]string{"1 matmul 2x3 x 3x4 -> 2x4", "1 relu 2x3", "1 concat 2x4", "1 softmax 2x7 axes [1] -> 2x7"},
			nil,
		},
		{
			"the same value twice is stored twice", modeltest.New().Input("x", 2, 3).Constant("w", 3, 4).Node("a = MatMul x w").Node("c = Concat a a", axis(1)).
				Node("y = Softmax c").Output("y"),
			[]string{"1 matmul+copy 2x3 x 3x4 -> 2x4", "1 softmax 2x8 axes [1] -> 2x8"},
			[]string{"a", "a.part"},
		},
		{
			"heads are slices of one product", modeltest.New().Input("x", 1, 6, 8).Constant("w", 8, 24).Node("a = MatMul x w").
				Known("heads", heads).Node("q k v = Split a", axis(2)).Node("i = Reshape q heads").Node("j = Reshape k heads").
				Node("m = Transpose i", modeltest.Ints("perm", 0, 2, 1, 3)).Node("n = Transpose j", modeltest.Ints("perm", 0, 2, 3, 1)).
				Node("s = MatMul m n").Node("z = Softmax v").Output("s", "z"),
			[]string{"1 matmul 1x6x8 x 8x24 -> 1x6x24", "1 matmul 1x6x2x4 x 1x2x4x6 -> 1x2x6x6", "1 softmax 1x6x8 axes [2] -> 1x6x8"},
			[]string{"m", "n", "v"},
		},
		{
			"one index of a gather is read where it lies", modeltest.New().Input("x", 2, 3, 4).Known("last", array.FromInt64([]int64{-1})).
				Node("g = Gather x last", axis(1)).Node("y = Softmax g").Output("y"),
			[]string{"1 softmax 2x4 axes [1] -> 2x4"}, []string{"g"},
		},
		{
			"a slice that is reshaped over its gaps is copied", modeltest.New().Input("x", 4, 6).Known("from", array.FromInt64([]int64{1}, 1)).
				Known("to", array.FromInt64([]int64{4}, 1)).Known("axes", array.FromInt64([]int64{1}, 1)).Node("s = Slice x from to axes").
				Known("flat", array.FromInt64([]int64{12}, 1)).Node("f = Reshape s flat").Node("y = Softmax f").Output("y"),
			[]string{"1 slice 4x6", "1 softmax 12 axes [0] -> 12"}, nil,
		},
		{
			"operands reach the concatenation through a reshape and a transposition", modeltest.New().Input("x", 1, 8, 2, 3).Constant("w", 4, 8, 1, 1).Constant("u", 1, 6, 4).
				Node("c = Conv x w").Known("rows", array.FromInt64([]int64{1, 4, 6}, 3)).Node("r = Reshape c rows").
				Node("t = Transpose r", modeltest.Ints("perm", 0, 2, 1)).Known("cls", modeltest.Wave(1, 1, 1, 1, 4)).Node("k = Concat cls t", axis(1)).
				Node("y = Softmax k").Output("y"),
			[]string{"1 conv2d 1x8x2x3 k1x1 -> 4", "1 copy", "1 softmax 1x7x4 axes [2] -> 1x7x4"}, nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := modeltest.Import(t, c.model)
			modeltest.CheckTasks(t, p, c.tasks...)
			if got := parts(p); !reflect.DeepEqual(got, c.parts) {
				t.Errorf("parts are %q, want %q", got, c.parts)
			}
			modeltest.Check(t, p)
			modeltest.CheckMeaning(t, c.model, p)
		})
	}
}
