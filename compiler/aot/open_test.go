package aot

import (
	"path/filepath"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// selecting is a package of a model that selects the positive ones of 12 numbers: their places and values, and all
// numbers, negated.
func selecting(t *testing.T) (*program.Program, Options) {
	t.Helper()
	m := modeltest.New().Input("x", 3, 4).Known("zero", array.FromFloat32([]float32{0})).Node("positive = Greater x zero").
		Node("places = NonZero positive").Node("rows = Transpose places").Node("values = GatherND x rows").Node("all = Neg x").
		Output("places", "all", "values")
	p, err := frontend.Import(m, frontend.Options{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	return p, plain(t, p)
}

// plain compiles a program with schedules without any primitives.
func plain(t *testing.T, p *program.Program) Options {
	t.Helper()
	var choices []Choice
	for _, task := range p.Tasks {
		choices = append(choices, Choice{Trace: schedule.New(task.Workload).Trace(), Origin: "default"})
	}
	o := options(t, residual(t))
	o.Choices = choices
	if _, err := Compile(t.Context(), p, o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOutputsHaveTheExtentThatWasCounted(t *testing.T) {
	p, o := selecting(t)
	m := opened(t, o.Output)
	if got, want := m.Manifest().Outputs[0].String(), "i64[2 0..12]"; got != want {
		t.Errorf("the manifest has the output %s, want %s", got, want)
	}
	for _, x := range []*array.Array{sample(1, 3, 4), array.New(array.Float32, 3, 4)} {
		inputs := map[string]*array.Array{"x": x}
		got, want := runEvaluated(t, p, m, inputs)
		if shown := m.Manifest().Shown(got)[2]; shown.Shape[0] != want["values"].Shape[0] {
			t.Errorf("%v is shown, want %d values", shown, want["values"].Shape[0])
		}
	}
}

// runEvaluated runs a model, whose outputs must be those that its program is evaluated to.
func runEvaluated(t *testing.T, p *program.Program, m *Model, inputs map[string]*array.Array) (got, want map[string]*array.Array) {
	t.Helper()
	want, err := evaluate.Program(p, inputs)
	if err != nil {
		t.Fatal(err)
	}
	if got, err = m.Run(inputs); err != nil {
		t.Fatal(err)
	}
	for name, w := range want {
		if err := modeltest.Compare(got[name], w); err != nil {
			t.Errorf("output %s is %v%v, want %v%v: %v", name, got[name].DType, got[name].Shape, w.DType, w.Shape, err)
		}
	}
	return got, want
}

func TestShapesOfOutputsFromC(t *testing.T) {
	_, o := selecting(t)
	dir := unpackedFor(t, o, "shapes.c")
	x := array.FromFloat32([]float32{1, -1, 2, 0, 0, 0, 3, -4, 0, 0, 0, 5}, 3, 4)
	out, err := run(t, []string{filepath.Join(dir, "user"), filepath.Join(dir, objectName), filepath.Join(dir, weightsName)}, x.Data)
	if err != nil {
		t.Fatal(err)
	}
	if want := "places 2/2 4/12\nall 3/3 4/4\nvalues 4/12\nbeyond: refused\n"; string(out) != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

// TestBranchThatIsNotChosenIsNotRun checks a package and its profile.
func TestBranchThatIsNotChosenIsNotRun(t *testing.T) {
	branch := func(name string, s modeltest.Model, output string) *onnx.Attribute {
		return &onnx.Attribute{Name: name, Type: onnx.AttrGraph, Graph: s.Output(output).Graph}
	}
	m := modeltest.New().Input("x", 3, 4).Input("a", 1).Constant("w", 4, 4).Known("zero", array.FromFloat32([]float32{0}, 1)).
		Node("positive = Greater a zero").
		Node("y = If positive", branch("then_branch", modeltest.New().Node("p = MatMul x w").Node("q = Neg p"), "q"),
			branch("else_branch", modeltest.New().Node("r = MatMul x w").Node("s = MatMul r w"), "s")).Output("y")
	p, err := frontend.Import(m, frontend.Options{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	model := opened(t, plain(t, p).Output)
	for _, positive := range []bool{true, false} {
		a := float32(-1)
		if positive {
			a = 1
		}
		runEvaluated(t, p, model, map[string]*array.Array{"x": sample(1, 3, 4), "a": array.FromFloat32([]float32{a}, 1)})
		seconds, err := model.Profile()
		if err != nil {
			t.Fatal(err)
		}
		made, left := 0, 0
		for k, c := range p.Calls {
			needed := len(c.If) == 0 || c.If[0].Is == positive
			if needed != (seconds[k] >= 0) {
				t.Errorf("call %q is needed: %v, and took %g s", c.Name, needed, seconds[k])
			}
			if needed {
				made++
			} else {
				left++
			}
		}
		if made == 0 || left == 0 {
			t.Errorf("%d calls are needed and %d are not: want some of both", made, left)
		}
	}
}
