package frontend

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// inner is a graph of an attribute, made like a model.
func inner(name string, s sketch, outputs ...string) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrGraph, Graph: s.output(outputs...).Graph}
}

func scalarInput(s sketch, name string, d array.DType) sketch {
	s.Graph.Inputs = append(s.Graph.Inputs, &onnx.ValueInfo{Name: name, DType: d, HasShape: true})
	return s
}

// results imports a model and evaluates it.
func results(t *testing.T, m *onnx.Model, inputs map[string]*array.Array) map[string]*array.Array {
	t.Helper()
	p, err := Import(m, Options{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	checkProgram(t, p)
	outs, err := p.Evaluate(inputs)
	if err != nil {
		t.Fatal(err)
	}
	return outs
}

func wantFloats(t *testing.T, got *array.Array, want ...float32) {
	t.Helper()
	if err := compare(got, array.FromFloat32(want, got.Shape...)); err != nil || int64(len(want)) != got.Len() {
		t.Errorf("got %v%v: %v", got.DType, got.Shape, err)
	}
}

func truth(v int64) *array.Array {
	a := array.New(array.Bool)
	a.SetInt(0, v)
	return a
}

func TestIfTakesTheBranchOfAKnownCondition(t *testing.T) {
	for cond, want := range []float32{-2, 4} {
		m := newSketch().input("x", 1).known("c", truth(int64(cond))).
			node("y = If c", inner("then_branch", newSketch().node("a = Add x x"), "a"),
				inner("else_branch", newSketch().node("b = Neg x"), "b")).output("y")
		outs := results(t, m, map[string]*array.Array{"x": array.FromFloat32([]float32{2}, 1)})
		wantFloats(t, outs["y"], want)
	}
}

func TestIfChoosesByDataBetweenResultsOfOneType(t *testing.T) {
	s := scalarInput(newSketch().input("x", 1), "c", array.Bool).
		node("y = If c", inner("then_branch", newSketch().node("a = Add x x"), "a"),
			inner("else_branch", newSketch().node("b = Neg x"), "b"))
	m := s.output("y")
	for cond, want := range []float32{-2, 4} {
		outs := results(t, m, map[string]*array.Array{"x": array.FromFloat32([]float32{2}, 1), "c": truth(int64(cond))})
		wantFloats(t, outs["y"], want)
	}
}

// doubling is a loop's body: v becomes v+v, and shows the number of the iteration plus v.
func doubling() sketch {
	s := scalarInput(scalarInput(newSketch(), "t", array.Int64), "go", array.Bool).input("v", 1)
	return s.node("more = Identity go").node("w = Add v v").
		node("f = Cast t", intAttr("to", 1)).node("shown = Add v f")
}

func TestLoopIsUnrolled(t *testing.T) {
	m := newSketch().input("x", 1).known("n", array.FromInt64([]int64{3})).
		node("y = Loop n _ x", inner("body", doubling(), "more", "w", "shown")).output("y", "s")
	m.Graph.Nodes[0].Outputs = []string{"y", "s"}
	outs := results(t, m, map[string]*array.Array{"x": array.FromFloat32([]float32{1}, 1)})
	wantFloats(t, outs["y"], 8)
	wantFloats(t, outs["s"], 1, 3, 6)
}

func TestScanGoesBackwards(t *testing.T) {
	body := newSketch().input("sum", 1).input("e", 1).node("next = Add sum e").node("copy = Identity next")
	m := newSketch().input("x", 3, 1).known("zero", array.New(array.Float32, 1)).
		node("y = Scan zero x", inner("body", body, "next", "copy"), intAttr("num_scan_inputs", 1),
			intsAttr("scan_input_directions", 1), intsAttr("scan_output_directions", 1)).output("y", "all")
	m.Graph.Nodes[0].Outputs = []string{"y", "all"}
	outs := results(t, m, map[string]*array.Array{"x": array.FromFloat32([]float32{1, 2, 4}, 3, 1)})
	wantFloats(t, outs["y"], 7)
	wantFloats(t, outs["all"], 7, 6, 4)
}

func TestSequencesAreFollowed(t *testing.T) {
	m := newSketch().input("x", 4).known("at", array.FromInt64([]int64{-1})).known("two", array.FromInt64([]int64{2})).
		node("parts = SplitToSequence x two").node("last = SequenceAt parts at").
		node("more = SequenceInsert parts last two").node("y = ConcatFromSequence more", intAttr("axis", 0)).
		node("count = SequenceLength more").output("y", "count")
	outs := results(t, m, map[string]*array.Array{"x": array.FromFloat32([]float32{1, 2, 3, 4}, 4)})
	wantFloats(t, outs["y"], 1, 2, 3, 4, 3, 4)
	if outs["count"].Int(0) != 3 {
		t.Errorf("the sequence has %d elements, want 3", outs["count"].Int(0))
	}
}

func TestFunctionsAreInlined(t *testing.T) {
	m := newSketch().input("x", 2).node("y = Leak x", &onnx.Attribute{Name: "slope", Type: onnx.AttrFloat, Float: 0.5}).output("y")
	m.Graph.Nodes[0].Domain = "local"
	m.Functions = []*onnx.Function{{
		Name: "Leak", Domain: "local", Inputs: []string{"a", "bias"}, Outputs: []string{"b"}, Attributes: []string{"slope"},
		Opsets: []onnx.Opset{{Version: 13}},
		Nodes: []*onnx.Node{
			{Op: "LeakyRelu", Inputs: []string{"a"}, Outputs: []string{"c"},
				Attributes: []*onnx.Attribute{{Name: "alpha", Ref: "slope", Type: onnx.AttrFloat}}},
			{Op: "Clip", Inputs: []string{"c", "bias"}, Outputs: []string{"b"}},
		},
	}}
	outs := results(t, m, map[string]*array.Array{"x": array.FromFloat32([]float32{-2, 3}, 2)})
	wantFloats(t, outs["y"], -1, 3)
}

func TestOperandsAreAlignedAsOldOperatorSetsSay(t *testing.T) {
	s := newSketch().input("x", 2, 3).input("b", 2).
		node("y = Add x b", intAttr("broadcast", 1), intAttr("axis", 0))
	s.Opsets[0].Version = 6
	outs := results(t, s.output("y"), map[string]*array.Array{
		"x": array.New(array.Float32, 2, 3), "b": array.FromFloat32([]float32{1, 2}, 2),
	})
	wantFloats(t, outs["y"], 1, 1, 1, 2, 2, 2)
}

func TestControlFlowThatIsRefused(t *testing.T) {
	endless := func() *onnx.Model {
		s := scalarInput(scalarInput(newSketch(), "t", array.Int64), "go", array.Bool).input("v", 1).node("more = Identity go")
		return newSketch().input("x", 1).known("yes", truth(1)).
			node("y = Loop _ yes x", inner("body", s, "more", "v")).output("y")
	}
	itself := newSketch().input("x", 1).node("y = F x").output("y")
	itself.Graph.Nodes[0].Domain = "local"
	itself.Functions = []*onnx.Function{{
		Name: "F", Domain: "local", Inputs: []string{"a"}, Outputs: []string{"b"},
		Nodes: []*onnx.Node{{Op: "F", Domain: "local", Inputs: []string{"a"}, Outputs: []string{"b"}}},
	}}
	for _, c := range []struct {
		name  string
		model *onnx.Model
		want  string
	}{
		{"endless loop", endless(), "with its loops unrolled"},
		{"trip count from data", scalarInput(newSketch().input("x", 1), "n", array.Int64).
			node("y = Loop n _ x", inner("body", doubling(), "more", "w", "shown")).output("y"), "the trip count is not constant"},
		{"function that calls itself", itself, "functions call each other deeper than 64"},
		{"sequence as an output", newSketch().input("x", 1).node("y = SequenceConstruct x").output("y"), "is not a tensor: make it one"},
		{"sequence as an operand", newSketch().input("x", 1).node("s = SequenceConstruct x").node("y = Relu s").output("y"),
			`node "make_y" (Relu, opset 13): input 0 is not a tensor`},
		{"random numbers", newSketch().input("x", 1).node("y = RandomNormalLike x").output("y"),
			"random numbers are not supported"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Import(c.model, Options{Verify: true}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}
