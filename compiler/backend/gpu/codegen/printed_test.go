package codegen_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/codegen"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/macros"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
)

// printed holds the kernels of a point of a space.
type printed struct {
	kernels []codegen.Kernel
	helpers string
	// point identifies the point.
	point string
}

// printPoint prints the kernels of a point.
func printPoint(t *testing.T, s *searchspace.Space, p searchspace.Point, on *target.Target) printed {
	t.Helper()
	made, err := s.Apply(p)
	if err != nil {
		t.Fatalf("%s: %v", s.Format(p), err)
	}
	f, err := codegen.Lower(made, on.GPU)
	if err != nil {
		t.Fatalf("%s: %v", s.Format(p), err)
	}
	var helpers cprint.Declarations
	kernels := codegen.Kernels("k", f, &helpers, macros.Text)
	return printed{kernels, helpers.Text(), s.Format(p)}
}

// text returns the text of all kernels.
func (p printed) text() (text string) {
	for _, k := range p.kernels {
		text += k.Text
	}
	return text
}

// parsed returns a workload from its text.
func parsed(t *testing.T, text string) *expr.Workload {
	t.Helper()
	w, err := expr.Parse("tilth-workload 1\n" + text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// restricted returns a space with some knobs fixed.
func restricted(t *testing.T, s *searchspace.Space, knobs map[string]int64) *searchspace.Space {
	t.Helper()
	values := map[string][]int64{}
	for name, v := range knobs {
		values[name] = []int64{v}
	}
	s, err := s.Restrict(values)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
