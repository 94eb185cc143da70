package modeltest

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
)

// Import imports a model and verifies the graph after each stage.
func Import(t *testing.T, m *onnx.Model) *program.Program {
	t.Helper()
	p, err := frontend.Import(m, frontend.Options{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Run evaluates a program on made-up inputs.
func Run(t *testing.T, p *program.Program) map[string]*array.Array {
	t.Helper()
	inputs := map[string]*array.Array{}
	for _, k := range p.Inputs {
		inputs[p.Values[k].Name] = Wave(0, 1, p.Values[k].Shape...)
	}
	outs, err := evaluate.Program(p, inputs)
	if err != nil {
		t.Fatal(err)
	}
	return outs
}

// TaskNames lists the tasks of a program, each with its count.
func TaskNames(p *program.Program) []string {
	var names []string
	for _, task := range p.Tasks {
		names = append(names, fmt.Sprintf("%d %s", task.Count, task.Name))
	}
	return names
}

// CheckTasks compares the names of tasks.
func CheckTasks(t *testing.T, p *program.Program, want ...string) {
	t.Helper()
	if got := TaskNames(p); !reflect.DeepEqual(got, want) {
		t.Errorf("tasks are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// CheckMeaning compares a program with the model evaluated by constant folding, node by node.
func CheckMeaning(t *testing.T, m *onnx.Model, p *program.Program) {
	t.Helper()
	known := &onnx.Model{Opsets: m.Opsets, Graph: &onnx.Graph{Name: "known", Nodes: m.Graph.Nodes, Outputs: m.Graph.Outputs}}
	known.Graph.Initializers = slices.Clone(m.Graph.Initializers)
	for _, k := range p.Inputs {
		v := p.Values[k]
		known.Graph.Initializers = append(known.Graph.Initializers, &onnx.Tensor{Name: v.Name, Value: Wave(0, 1, v.Shape...)})
	}
	got, want := Run(t, p), Run(t, Import(t, known))
	for name := range want {
		if err := Compare(got[name], want[name]); err != nil {
			t.Errorf("output %q: %v", name, err)
		}
	}
}

// Compare uses the tolerances of ONNX's test runner, relative 1e-3 and absolute 1e-7, but wider for 16-bit types.
func Compare(got, want *array.Array) error {
	if got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) {
		return fmt.Errorf("got %v%v, want %v%v", got.DType, got.Shape, want.DType, want.Shape)
	}
	for i := range want.Len() {
		g, w := got.Float(i), want.Float(i)
		if g == w || math.IsNaN(g) && math.IsNaN(w) {
			continue
		}
		if !want.DType.IsFloat() || !(math.Abs(g-w) <= 1e-6+1e-3*math.Abs(w)) {
			return fmt.Errorf("element %d is %g, want %g", i, g, w)
		}
	}
	return nil
}
