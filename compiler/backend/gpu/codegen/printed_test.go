package codegen_test

import (
	"slices"
	"strings"
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

// ptx compiles the kernels for a chip that has their instructions. It fails if the compiler or the assembler uses
// local memory.
func (p printed) ptx(t *testing.T) string {
	t.Helper()
	arch := chips(p.text())[0]
	made, err := ptx(t, arch, p.helpers+p.text())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(made, ".local") {
		t.Errorf("%s keeps results in memory:\n%s", p.point, p.text())
	}
	spillsNothing(t, arch, made)
	return made
}

// has fails if the PTX of the kernels lacks one of the words.
func (p printed) has(t *testing.T, made string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(made, w) {
			t.Errorf("%s: there is no %s in\n%s", p.point, w, p.text())
		}
	}
}

// lacks fails if it contains one of them.
func (p printed) lacks(t *testing.T, made string, words ...string) {
	t.Helper()
	for _, w := range words {
		if strings.Contains(made, w) {
			t.Errorf("%s: there is %s in\n%s", p.point, w, p.text())
		}
	}
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

// by returns the part of a space with an algorithm.
func by(t *testing.T, s *searchspace.Space, algorithm string) *searchspace.Space {
	t.Helper()
	all := s.Algorithms()
	k := slices.IndexFunc(all, func(a searchspace.Algorithm) bool { return a.Name == algorithm })
	if k < 0 {
		t.Fatalf("there is no %s among %v", algorithm, all)
	}
	return s.Of(all[k])
}

// pointWith returns the default point with other values of some knobs, where possible.
func pointWith(t *testing.T, s *searchspace.Space, values map[string]int64) searchspace.Point {
	t.Helper()
	p := s.Default()
	for k, knob := range s.Knobs {
		if v, ok := values[knob.Name]; ok && s.Active(p, k) && slices.Contains(knob.Values, v) {
			p[k] = slices.Index(knob.Values, v)
		}
	}
	if err := s.Legal(p); err != nil {
		t.Fatalf("%s: %v", s.Format(p), err)
	}
	return p
}
