package importer_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// behindPast has scores of n rows x against themselves and the m rows p before them: (n, m+n). Known are past, rows
// and total, how many there are, as lists of one, and m, n and t, which are scalars.
func behindPast() modeltest.Model {
	list := func(v ...int64) *array.Array { return array.FromInt64(v, int64(len(v))) }
	triangle := array.New(array.Float32, 32, 32)
	for k := range triangle.Len() {
		if k%32 > k/32 {
			triangle.SetFloat(k, 1)
		}
	}
	s := modeltest.New().Opset(14).Input("x", 8, 3).Input("p", 12, 3).
		Known("zero", list(0)).Known("one", list(1)).Known("axes", list(0, 1)).Known("triangle", triangle).Known("none", array.New(array.Float32)).
		Known("scalar0", array.FromInt64([]int64{0})).Known("scalar1", array.FromInt64([]int64{1})).
		Node("past = Shape p", modeltest.Int("end", 1)).Node("rows = Shape x", modeltest.Int("end", 1)).Node("total = Add past rows").
		Node("wide = Concat rows total", modeltest.Int("axis", 0)).
		Node("m = Squeeze past").Node("n = Squeeze rows").Node("t = Squeeze total").
		Node("all = Concat p x", modeltest.Int("axis", 0)).Node("turned = Transpose all").Node("scores = MatMul x turned")
	s.Graph.Inputs[0].Shape[0] = onnx.Dim{Value: -1, Param: "n"}
	s.Graph.Inputs[1].Shape[0] = onnx.Dim{Value: -1, Param: "m"}
	return s
}

// TestConstantsOfAnOpenPastAreComputedPerRun checks that constants that depend on an extent are computed in each
// execution, in all forms in which exporters write positions and masks.
func TestConstantsOfAnOpenPastAreComputedPerRun(t *testing.T) {
	float := modeltest.Int("to", 1)
	for name, m := range map[string]*onnx.Model{
		"places from the past on": behindPast().Node("places = Range m t scalar1").Node("f = Cast places", float).Node("c = Unsqueeze f one").
			Node("y = Mul x c").Output("y"),
		"places, and the past added": behindPast().Node("near = Range scalar0 n scalar1").Node("places = Add near past").Node("f = Cast places", float).
			Node("c = Unsqueeze f one").Node("y = Mul x c").Output("y"),
		"places that are counted": behindPast().Node("ones = Expand one rows").Node("count = CumSum ones scalar0").Node("places = Add count past").
			Node("f = Cast places", float).Node("c = Unsqueeze f one").Node("y = Mul x c").Output("y"),
		"a comparison of places": behindPast().Node("places = Range m t scalar1").Node("c = Unsqueeze places one").Node("keys = Range scalar0 t scalar1").
			Node("seen = LessOrEqual keys c").Node("y = Where seen scores none").Output("y"),
		"the end of a triangle": behindPast().Node("from = Concat past zero", modeltest.Int("axis", 0)).Node("to = Concat total total", modeltest.Int("axis", 0)).
			Node("mask = Slice triangle from to axes").Node("y = Add scores mask").Output("y"),
		"a triangle behind the past": behindPast().Node("flat = ConstantOfShape wide").Node("ones = Cast flat", modeltest.Int("to", 7)).
			Node("more = Add ones scalar1").Node("k = Add past one").Node("above = Trilu more k").Node("mask = Cast above", float).
			Node("y = Sub scores mask").Output("y"),
		"zeros and ones in a row": behindPast().Node("old = ConstantOfShape past").Node("new = Expand one rows").Node("new_f = Cast new", float).
			Node("both = Concat old new_f", modeltest.Int("axis", 0)).Node("y = Mul scores both").Output("y"),
	} {
		t.Run(name, func(t *testing.T) {
			checkBehindPast(t, m)
		})
	}
}

// checkBehindPast compares a model of n rows behind m, both open, with the same with numbers in their place.
func checkBehindPast(t *testing.T, m *onnx.Model) {
	t.Helper()
	open := map[string]frontend.Bounds{"n": {Min: 1, Max: 8}, "m": {Min: 0, Max: 12}}
	var sizes []map[string]int64
	for _, at := range [][2]int64{{1, 12}, {8, 1}, {3, 5}, {1, 1}, {8, 12}, {4, 0}} {
		sizes = append(sizes, map[string]int64{"n": at[0], "m": at[1]})
	}
	modeltest.CheckOpen(t, m, open, sizes...)
}

// TestAttentionBehindAnOpenPast: operators that have a past as an operand.
func TestAttentionBehindAnOpenPast(t *testing.T) {
	attention := func() modeltest.Model {
		s := modeltest.New().Opset(23).Input("q", 1, 8, 8).Input("k", 1, 8, 8).Input("v", 1, 8, 8).Input("pk", 1, 2, 12, 4).Input("pv", 1, 2, 12, 4).
			Constant("cos", 32, 2).Constant("sin", 32, 2)
		for _, in := range s.Graph.Inputs[:3] {
			in.Shape[1] = onnx.Dim{Value: -1, Param: "n"}
		}
		for _, in := range s.Graph.Inputs[3:] {
			in.Shape[2] = onnx.Dim{Value: -1, Param: "m"}
		}
		return s
	}
	heads := []*onnx.Attribute{modeltest.Int("q_num_heads", 2), modeltest.Int("kv_num_heads", 2), modeltest.Int("is_causal", 1)}
	groups := []*onnx.Attribute{modeltest.Int("num_heads", 2), modeltest.Int("kv_num_heads", 2), modeltest.Int("do_rotary", 1), modeltest.Int("local_window_size", 5)}
	for name, s := range map[string]modeltest.Model{
		"Attention":           attention().Node("y keys values = Attention q k v _ pk pv", heads...),
		"MultiHeadAttention":  attention().Node("y keys values = MultiHeadAttention q k v _ _ _ pk pv", modeltest.Int("num_heads", 2), modeltest.Int("unidirectional", 1)),
		"GroupQueryAttention": attention().Node("y keys values = GroupQueryAttention q k v pk pv _ _ cos sin", groups...),
	} {
		t.Run(name, func(t *testing.T) {
			if name != "Attention" {
				s.Graph.Nodes[0].Domain = "com.microsoft"
			}
			checkBehindPast(t, s.Output("y", "keys", "values"))
		})
	}
}
