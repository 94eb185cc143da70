package frontend

import (
	"reflect"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
)

// checkMeaning compares a program with its model evaluated node by node: with known inputs, all of it is folded.
func checkMeaning(t *testing.T, m *onnx.Model, p *program.Program) {
	t.Helper()
	known := &onnx.Model{Opsets: m.Opsets, Graph: &onnx.Graph{Name: "known", Nodes: m.Graph.Nodes, Outputs: m.Graph.Outputs}}
	known.Graph.Initializers = slices.Clone(m.Graph.Initializers)
	for _, k := range p.Inputs {
		v := p.Values[k]
		known.Graph.Initializers = append(known.Graph.Initializers, &onnx.Tensor{Name: v.Name, Value: wave(0, 1, v.Shape...)})
	}
	got, want := run(t, p), run(t, mustImport(t, known))
	for name := range want {
		if err := compare(got[name], want[name]); err != nil {
			t.Errorf("output %q: %v", name, err)
		}
	}
}

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
	axis := func(k int64) *onnx.Attribute { return intAttr("axis", k) }
	heads := array.FromInt64([]int64{1, 6, 2, 4}, 4)
	pooled := func() sketch {
		return newSketch().input("x", 1, 8, 5, 5).constant("w", 4, 8, 1, 1).constant("v", 6, 8, 3, 3).
			node("p = MaxPool x", intsAttr("kernel_shape", 1, 1))
	}
	end := func(s sketch) *onnx.Model { return s.node("g = GlobalMaxPool y").output("g") }
	for _, c := range []struct {
		name  string
		model *onnx.Model
		tasks []string
		parts []string
	}{
		{
			"branches write into the concatenation", end(pooled().node("a = Conv p w").node("r = Relu a").node("b = Conv p v", same3x3).
				node("y = Concat r b", axis(1))),
			[]string{"1 maxpool 1x8x5x5 k1x1 -> 8", "1 conv2d+relu 1x5x5x8 k1x1 -> 4", "1 conv2d 1x5x5x8 k3x3 -> 6", "1 globalmaxpool 1x5x5x10 -> 10"},
			[]string{"r", "b"},
		},
		{
			"along rows, parts have no gaps but may begin anywhere", end(pooled().node("a = Conv p w").node("b = AveragePool a", intsAttr("kernel_shape", 1, 1)).
				node("y = Concat a b", axis(2))),
			[]string{"1 maxpool 1x8x5x5 k1x1 -> 8", "1 conv2d 1x5x5x8 k1x1 -> 4", "1 avgpool 1x5x5x4 k1x1 -> 4", "1 globalmaxpool 1x10x5x4 -> 4"},
			nil,
		},
		{
			"a concatenation inside another", end(pooled().node("a = Conv p w").node("b = Conv p v", same3x3).node("i = Concat a b", axis(1)).
				node("c = MaxPool i", intsAttr("kernel_shape", 1, 1)).node("y = Concat c i", axis(1))),
			[]string{"1 maxpool 1x8x5x5 k1x1 -> 8", "1 conv2d 1x5x5x8 k1x1 -> 4", "1 conv2d 1x5x5x8 k3x3 -> 6", "1 maxpool 1x5x5x10 k1x1 -> 10", "1 globalmaxpool 1x5x5x20 -> 20"},
			[]string{"a", "b", "i", "c"},
		},
		{
			"concatenations that begin alike share a buffer", end(pooled().node("a = Conv p w").node("b = Conv p v", same3x3).node("i = Concat a b", axis(1)).
				node("c = MaxPool i", intsAttr("kernel_shape", 1, 1)).node("y = Concat a b c", axis(1))),
			[]string{"1 maxpool 1x8x5x5 k1x1 -> 8", "1 conv2d 1x5x5x8 k1x1 -> 4", "1 conv2d 1x5x5x8 k3x3 -> 6", "1 maxpool 1x5x5x10 k1x1 -> 10", "1 globalmaxpool 1x5x5x20 -> 20"},
			[]string{"a", "b", "i", "c"},
		},
		{
			"a value in two concatenations is stored twice", end(pooled().node("a = Conv p w").node("b = Conv p v", same3x3).node("i = Concat b a", axis(1)).
				node("c = MaxPool i", intsAttr("kernel_shape", 1, 1)).node("y = Concat a c", axis(1))),
			[]string{"1 maxpool 1x8x5x5 k1x1 -> 8", "1 conv2d+copy 1x5x5x8 k1x1 -> 4", "1 conv2d 1x5x5x8 k3x3 -> 6", "1 maxpool 1x5x5x10 k1x1 -> 10", "1 globalmaxpool 1x5x5x14 -> 14"},
			[]string{"a", "a.part", "b", "c"},
		},
		{
			"what arrives from outside is copied", newSketch().input("x", 2, 3).constant("w", 3, 4).node("a = MatMul x w").node("c = Concat x a", axis(1)).
				node("y = Softmax c").output("y"),
			[]string{"1 matmul 2x3 x 3x4 -> 2x4", "1 copy 2x3", "1 softmax 2x7 axes [1] -> 2x7"},
			[]string{"a", "x.part"},
		},
		{
			"nothing to compute stays one kernel", newSketch().input("x", 2, 3).input("z", 2, 5).node("c = Concat x z", axis(1)).node("y = Relu c").output("y"),
			[]string{"1 concat+relu 2x3"}, nil,
		},
		{
			"an output is no part", newSketch().input("x", 2, 3).constant("w", 3, 4).node("a = MatMul x w").node("b = Relu x").node("c = Concat a b", axis(1)).
				node("y = Softmax c").output("y", "a"),
			[]string{"1 matmul 2x3 x 3x4 -> 2x4", "1 relu 2x3", "1 concat 2x4", "1 softmax 2x7 axes [1] -> 2x7"},
			nil,
		},
		{
			"the same value twice is stored twice", newSketch().input("x", 2, 3).constant("w", 3, 4).node("a = MatMul x w").node("c = Concat a a", axis(1)).
				node("y = Softmax c").output("y"),
			[]string{"1 matmul+copy 2x3 x 3x4 -> 2x4", "1 softmax 2x8 axes [1] -> 2x8"},
			[]string{"a", "a.part"},
		},
		{
			"heads are slices of one product", newSketch().input("x", 1, 6, 8).constant("w", 8, 24).node("a = MatMul x w").
				known("heads", heads).node("q k v = Split a", axis(2)).node("i = Reshape q heads").node("j = Reshape k heads").
				node("m = Transpose i", intsAttr("perm", 0, 2, 1, 3)).node("n = Transpose j", intsAttr("perm", 0, 2, 3, 1)).
				node("s = MatMul m n").node("z = Softmax v").output("s", "z"),
			[]string{"1 matmul 1x6x8 x 8x24 -> 1x6x24", "1 matmul 1x6x2x4 x 1x2x4x6 -> 1x2x6x6", "1 softmax 1x6x8 axes [2] -> 1x6x8"},
			[]string{"m", "n", "v"},
		},
		{
			"one index of a gather is read where it lies", newSketch().input("x", 2, 3, 4).known("last", array.FromInt64([]int64{-1})).
				node("g = Gather x last", axis(1)).node("y = Softmax g").output("y"),
			[]string{"1 softmax 2x4 axes [1] -> 2x4"}, []string{"g"},
		},
		{
			"a slice that is reshaped over its gaps is copied", newSketch().input("x", 4, 6).known("from", array.FromInt64([]int64{1}, 1)).
				known("to", array.FromInt64([]int64{4}, 1)).known("axes", array.FromInt64([]int64{1}, 1)).node("s = Slice x from to axes").
				known("flat", array.FromInt64([]int64{12}, 1)).node("f = Reshape s flat").node("y = Softmax f").output("y"),
			[]string{"1 slice 4x6", "1 softmax 12 axes [0] -> 12"}, nil,
		},
		{
			"operands reach the concatenation through a reshape and a transposition", newSketch().input("x", 1, 8, 2, 3).constant("w", 4, 8, 1, 1).constant("u", 1, 6, 4).
				node("c = Conv x w").known("rows", array.FromInt64([]int64{1, 4, 6}, 3)).node("r = Reshape c rows").
				node("t = Transpose r", intsAttr("perm", 0, 2, 1)).known("cls", wave(1, 1, 1, 1, 4)).node("k = Concat cls t", axis(1)).
				node("y = Softmax k").output("y"),
			[]string{"1 conv2d 1x8x2x3 k1x1 -> 4", "1 copy", "1 softmax 1x7x4 axes [2] -> 1x7x4"}, nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := mustImport(t, c.model)
			checkTasks(t, p, c.tasks...)
			if got := parts(p); !reflect.DeepEqual(got, c.parts) {
				t.Errorf("parts are %q, want %q", got, c.parts)
			}
			checkProgram(t, p)
			checkMeaning(t, c.model, p)
		})
	}
}
