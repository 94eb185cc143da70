package sketch_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// TestPositionsGoOnInTheNextRow covers tiles of six positions: they waste a seventh of a row of seven, but hardly
// anything of 49.
func TestPositionsGoOnInTheNextRow(t *testing.T) {
	s := sketch.New(sketch.Conv(t, 7, 64), sketch.Target(t, "x86-64-v3"), schedule.Strict)
	rows, _ := s.Parse("tv=2 tw=6 th=1 joint=0 feed=1")
	joint, ok := s.Parse("tv=2 tw=6 th=1 joint=1 feed=1")
	if !ok || s.Cost(joint) >= s.Cost(rows) {
		t.Errorf("%s costs %v, %s %v", s.Format(joint), s.Cost(joint), s.Format(rows), s.Cost(rows))
	}
	applied, err := s.Apply(joint)
	if err != nil {
		t.Fatal(err)
	}
	if trace := string(applied.Trace()); !strings.Contains(trace, "\nflatten ") {
		t.Errorf("no axis is flattened:\n%s", trace)
	}
	if _, err := lower.Schedule(applied); err != nil {
		t.Error(err)
	}
}

// TestWeightsOfAPhaseLieTogether checks that the outputs of one phase of a transposed convolution, which read every
// second element of the weights, find them contiguous.
func TestWeightsOfAPhaseLieTogether(t *testing.T) {
	const size, in, out, taps, stride = 8, 32, 16, 2, 2
	x, w := expr.NewInput("x", array.Float32, size+taps, in), expr.NewConstant("w", array.Float32, taps*stride, in, out)
	c := expr.ReduceOver("conv", expr.Sum, []int64{size, stride, out}, []int64{taps, in}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(x.At(expr.AddE(i[0], r[0]), r[1]), w.At(expr.AddE(i[1], expr.MulE(r[0], expr.I(stride))), r[1], i[2]))
	})
	s := sketch.New(sketch.WorkloadOf(t, c), sketch.Target(t, "x86-64-v3"), schedule.Strict)
	p, ok := s.Parse("tv=2 tw=4 kb=0")
	if !ok {
		t.Fatalf("%s is not legal", s.Format(p))
	}
	applied, err := s.Apply(p)
	if err != nil {
		t.Fatal(err)
	}
	want := []schedule.PackDim{{Dim: 2, Factor: 16}, {Dim: 0, Factor: stride, Inner: true}, {Dim: 0, Factor: stride}, {Dim: 1}, {Dim: 2, Factor: 16, Inner: true}}
	if got := applied.Packs[0]; !slices.Equal(got, want) {
		t.Errorf("the layout is %v, want %v", got, want)
	}
}
