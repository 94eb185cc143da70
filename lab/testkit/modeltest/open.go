package modeltest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
)

// Open gives an input's axis a name, so that its extent can be open.
func (s Model) Open(input string, axis int, name string) Model {
	for _, in := range s.Graph.Inputs {
		if in.Name == input {
			in.Shape[axis] = onnx.Dim{Value: -1, Param: name}
		}
	}
	return s
}

// CheckOpen compares a model with open extents, evaluated at the given sizes, with the same model of these sizes.
func CheckOpen(t *testing.T, m *onnx.Model, open map[string]frontend.Bounds, sizes ...map[string]int64) {
	t.Helper()
	general, err := frontend.Import(m, frontend.Options{Open: open, Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range sizes {
		shapes := map[string][]int64{}
		for name, n := range size {
			shapes[name] = []int64{n}
		}
		say := fmt.Sprint(slices.Sorted(maps.Keys(size)), size)
		fixed, err := frontend.Import(m, frontend.Options{Shapes: shapes, Verify: true})
		if err != nil {
			t.Fatalf("%s: %v", say, err)
		}
		CheckSame(t, say, general, fixed)
	}
}

// CheckSame compares the outputs of a program with those of another one of fixed shapes, for inputs of the other one.
func CheckSame(t *testing.T, say string, p, fixed *program.Program) {
	t.Helper()
	inputs := map[string]*array.Array{}
	for k, v := range fixed.Inputs {
		inputs[fixed.Values[v].Name] = Wave(float64(k), 1, fixed.Values[v].Shape...).As(fixed.Values[v].DType)
	}
	want, err := evaluate.Program(fixed, inputs)
	if err != nil {
		t.Fatalf("%s: %v", say, err)
	}
	got, err := evaluate.Program(p, inputs)
	if err != nil {
		t.Fatalf("%s: %v", say, err)
	}
	for name := range want {
		if err := Compare(got[name], want[name]); err != nil {
			t.Errorf("%s: %s: %v", say, name, err)
		}
	}
}
