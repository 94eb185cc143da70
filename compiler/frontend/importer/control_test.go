package importer_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// inner returns a graph of an attribute, made like a model.
func inner(name string, s modeltest.Model, outputs ...string) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrGraph, Graph: s.Output(outputs...).Graph}
}

func scalarInput(s modeltest.Model, name string, d array.DType) modeltest.Model {
	s.Graph.Inputs = append(s.Graph.Inputs, &onnx.ValueInfo{Name: name, DType: d, HasShape: true})
	return s
}

// results imports a model and evaluates it.
func results(t *testing.T, m *onnx.Model, inputs map[string]*array.Array) map[string]*array.Array {
	t.Helper()
	p, err := frontend.Import(m, frontend.Options{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	modeltest.Check(t, p)
	outs, err := evaluate.Program(p, inputs)
	if err != nil {
		t.Fatal(err)
	}
	return outs
}

func wantFloats(t *testing.T, got *array.Array, want ...float32) {
	t.Helper()
	if err := modeltest.Compare(got, array.FromFloat32(want, got.Shape...)); err != nil || int64(len(want)) != got.Len() {
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
		m := modeltest.New().Input("x", 1).Known("c", truth(int64(cond))).
			Node("y = If c", inner("then_branch", modeltest.New().Node("a = Add x x"), "a"),
				inner("else_branch", modeltest.New().Node("b = Neg x"), "b")).Output("y")
		outs := results(t, m, map[string]*array.Array{"x": array.FromFloat32([]float32{2}, 1)})
		wantFloats(t, outs["y"], want)
	}
}

func TestIfChoosesByDataBetweenResultsOfOneType(t *testing.T) {
	s := scalarInput(modeltest.New().Input("x", 1), "c", array.Bool).
		Node("y = If c", inner("then_branch", modeltest.New().Node("a = Add x x"), "a"),
			inner("else_branch", modeltest.New().Node("b = Neg x"), "b"))
	m := s.Output("y")
	for cond, want := range []float32{-2, 4} {
		outs := results(t, m, map[string]*array.Array{"x": array.FromFloat32([]float32{2}, 1), "c": truth(int64(cond))})
		wantFloats(t, outs["y"], want)
	}
}

// TestBranchThatIsNotChosenIsNotComputed checks branches with various last operators.
func TestBranchThatIsNotChosenIsNotComputed(t *testing.T) {
	s := scalarInput(modeltest.New().Input("x", 2, 8), "c", array.Bool).Constant("v", 8, 8).Constant("w", 8, 8).Known("axis", array.FromInt64([]int64{1})).
		Node("y = If c", inner("then_branch", modeltest.New().Node("a = MatMul x v").Node("b = CumSum a axis").Node("d = MatMul b w"), "d"),
			inner("else_branch", modeltest.New().Node("e = MatMul x w").Node("f = Relu e"), "f"))
	p := modeltest.Import(t, s.Output("y"))
	condition, want := p.Calls[len(p.Calls)-1].Args[0], []bool{true, true, true, false}
	for k, c := range p.Calls {
		choice := k == len(want)
		if len(p.Calls) != len(want)+1 || choice != (len(c.If) == 0) || !choice && c.If[0] != (program.Condition{Value: condition, Is: want[k]}) {
			t.Errorf("call %d of %d, %s, is made if %v", k, len(p.Calls), c.Name, c.If)
		}
	}
}

// doubling returns a loop's body: v becomes v+v, and shows the number of the iteration plus v.
func doubling() modeltest.Model {
	s := scalarInput(scalarInput(modeltest.New(), "t", array.Int64), "go", array.Bool).Input("v", 1)
	return s.Node("more = Identity go").Node("w = Add v v").
		Node("f = Cast t", modeltest.Int("to", 1)).Node("shown = Add v f")
}

func TestLoopIsUnrolled(t *testing.T) {
	m := modeltest.New().Input("x", 1).Known("n", array.FromInt64([]int64{3})).
		Node("y = Loop n _ x", inner("body", doubling(), "more", "w", "shown")).Output("y", "s")
	m.Graph.Nodes[0].Outputs = []string{"y", "s"}
	outs := results(t, m, map[string]*array.Array{"x": array.FromFloat32([]float32{1}, 1)})
	wantFloats(t, outs["y"], 8)
	wantFloats(t, outs["s"], 1, 3, 6)
}

func TestScanGoesBackwards(t *testing.T) {
	body := modeltest.New().Input("sum", 1).Input("e", 1).Node("next = Add sum e").Node("copy = Identity next")
	m := modeltest.New().Input("x", 3, 1).Known("zero", array.New(array.Float32, 1)).
		Node("y = Scan zero x", inner("body", body, "next", "copy"), modeltest.Int("num_scan_inputs", 1),
			modeltest.Ints("scan_input_directions", 1), modeltest.Ints("scan_output_directions", 1)).Output("y", "all")
	m.Graph.Nodes[0].Outputs = []string{"y", "all"}
	outs := results(t, m, map[string]*array.Array{"x": array.FromFloat32([]float32{1, 2, 4}, 3, 1)})
	wantFloats(t, outs["y"], 7)
	wantFloats(t, outs["all"], 7, 6, 4)
}

func TestSequencesAreFollowed(t *testing.T) {
	m := modeltest.New().Input("x", 4).Known("at", array.FromInt64([]int64{-1})).Known("two", array.FromInt64([]int64{2})).
		Node("parts = SplitToSequence x two").Node("last = SequenceAt parts at").
		Node("more = SequenceInsert parts last two").Node("y = ConcatFromSequence more", modeltest.Int("axis", 0)).
		Node("count = SequenceLength more").Output("y", "count")
	outs := results(t, m, map[string]*array.Array{"x": array.FromFloat32([]float32{1, 2, 3, 4}, 4)})
	wantFloats(t, outs["y"], 1, 2, 3, 4, 3, 4)
	if outs["count"].Int(0) != 3 {
		t.Errorf("the sequence has %d elements, want 3", outs["count"].Int(0))
	}
}

func TestFunctionsAreInlined(t *testing.T) {
	m := modeltest.New().Input("x", 2).Node("y = Leak x", &onnx.Attribute{Name: "slope", Type: onnx.AttrFloat, Float: 0.5}).Output("y")
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
	s := modeltest.New().Input("x", 2, 3).Input("b", 2).
		Node("y = Add x b", modeltest.Int("broadcast", 1), modeltest.Int("axis", 0))
	s.Opsets[0].Version = 6
	outs := results(t, s.Output("y"), map[string]*array.Array{
		"x": array.New(array.Float32, 2, 3), "b": array.FromFloat32([]float32{1, 2}, 2),
	})
	wantFloats(t, outs["y"], 1, 1, 1, 2, 2, 2)
}

func TestControlFlowThatIsRefused(t *testing.T) {
	endless := func() *onnx.Model {
		s := scalarInput(scalarInput(modeltest.New(), "t", array.Int64), "go", array.Bool).Input("v", 1).Node("more = Identity go")
		return modeltest.New().Input("x", 1).Known("yes", truth(1)).
			Node("y = Loop _ yes x", inner("body", s, "more", "v")).Output("y")
	}
	itself := modeltest.New().Input("x", 1).Node("y = F x").Output("y")
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
		{"trip count from data", scalarInput(modeltest.New().Input("x", 1), "n", array.Int64).
			Node("y = Loop n _ x", inner("body", doubling(), "more", "w", "shown")).Output("y"), "stacked results need one with a bound"},
		{"function that calls itself", itself, "functions call each other deeper than 64"},
		{"sequence as an output", modeltest.New().Input("x", 1).Node("y = SequenceConstruct x").Output("y"), "is not a tensor: make it one"},
		{"sequence as an operand", modeltest.New().Input("x", 1).Node("s = SequenceConstruct x").Node("y = Relu s").Output("y"),
			`node "make_y" (Relu, opset 13): input 0 is not a tensor`},
		{"random numbers", modeltest.New().Input("x", 1).Node("y = RandomNormalLike x").Output("y"),
			"random numbers are not supported"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := frontend.Import(c.model, frontend.Options{Verify: true}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}
