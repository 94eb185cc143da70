package sketch

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/modelzoo"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

func TestSeedsHoldTheHandWrittenTiles(t *testing.T) {
	tiles := map[string][]string{
		"x86-64-v4": {"tv=2 tw=14 th=1", "tv=4 tw=7 th=1", "tv=4 tw=6 th=1", "tv=6 tw=4 th=1", "tv=1 tw=28 th=1", "tv=2 tw=12 th=1"},
		"x86-64-v3": {"tv=2 tw=6 th=1", "tv=3 tw=4 th=1"},
		"arm64":     {"tv=3 tw=8 th=1", "tv=4 tw=6 th=1"},
	}
	for name, wanted := range tiles {
		s := New(Conv(t, 28, 128), Target(t, name), schedule.Default)
		var seeds []string
		for _, p := range s.Seeds() {
			seeds = append(seeds, s.Format(p))
		}
		all := strings.Join(seeds, "\n")
		for _, tile := range wanted {
			if !strings.Contains(all, tile) {
				t.Errorf("%s: no seed has the tile %s", name, tile)
			}
		}
	}
}

func TestEveryTaskOfTheModelsHasASchedule(t *testing.T) {
	for _, name := range []string{"resnet-18", "resnet-50-v2", "mobilenet-v2", "squeezenet-v1.1", "mlp"} {
		m, err := modelzoo.Build(name, modelzoo.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := frontend.Import(m, frontend.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, on := range []string{"x86-64-v4", "x86-64-v3", "arm64"} {
			for k, task := range p.Tasks {
				if testing.Short() && k%6 != 2*i {
					continue // each target has other tasks
				}
				s := New(task.Workload, Target(t, on), schedule.Default)
				scheduled, err := s.Apply(s.Default())
				if err == nil {
					_, err = lower.Schedule(scheduled)
				}
				if err != nil {
					t.Errorf("%s, %s on %s: default %s: %v", name, task.Name, on, s.Format(s.Default()), err)
				}
			}
		}
	}
}

func TestPointIsReadBackAsWritten(t *testing.T) {
	s := New(Conv(t, 28, 64), Target(t, "x86-64-v4"), schedule.Default)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		p, ok := s.Random(rng)
		if !ok {
			t.Fatal("no legal point was drawn")
		}
		q, ok := s.Parse(s.Format(p))
		if !ok || q.Key() != p.Key() {
			t.Fatalf("%s was read as %s", s.Format(p), s.Format(q))
		}
	}
}

func TestPointsOfOtherShapesAreClamped(t *testing.T) {
	large, small := New(Conv(t, 56, 64), Target(t, "x86-64-v4"), schedule.Default), New(Conv(t, 7, 64), Target(t, "x86-64-v4"), schedule.Default)
	p, _ := large.Parse("tv=2 tw=14 th=1 hb=4 feed=2")
	q, ok := small.Parse(large.Format(p))
	if !ok || !strings.Contains(small.Format(q), "tv=2 tw=7 th=1") {
		t.Errorf("%s became %s", large.Format(p), small.Format(q))
	}
}

func TestConstraintsComeBeforeCompiling(t *testing.T) {
	s := New(Conv(t, 28, 128), Target(t, "x86-64-v3"), schedule.Default)
	tests := []struct{ name, point, want string }{
		{"registers", "tv=2 tw=14 th=1", "space: a tile of 14x2 vectors needs 31 vector registers of 16"},
		{"code", "tv=2 tw=6 th=1 ku=32", "space: a tile of 6x2 vectors unrolled 32 times is too much code"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, ok := s.Parse(tt.point)
			if ok {
				t.Fatal("the point is legal")
			}
			if _, err := s.Apply(p); err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestDefaultIsAlwaysTheSame(t *testing.T) {
	a, b := New(Conv(t, 14, 256), Target(t, "x86-64-v4"), schedule.Default), New(Conv(t, 14, 256), Target(t, "x86-64-v4"), schedule.Default)
	if a.Format(a.Default()) != b.Format(b.Default()) {
		t.Errorf("%s, then %s", a.Format(a.Default()), b.Format(b.Default()))
	}
}

func BenchmarkDraft(b *testing.B) {
	s := New(Conv(b, 28, 128), Target(b, "x86-64-v4"), schedule.Default)
	rng := rand.New(rand.NewPCG(1, 1))
	for b.Loop() {
		p, _ := s.Random(rng)
		s.Cost(p)
	}
}

func BenchmarkApply(b *testing.B) {
	s := New(Conv(b, 28, 128), Target(b, "x86-64-v4"), schedule.Default)
	p := s.Default()
	for b.Loop() {
		if _, err := s.Apply(p); err != nil {
			b.Fatal(err)
		}
	}
}

// TestChainThatDoublesIsNotInlinedWhole uses stages that, inlined into one another, would form a body of 3^20 nodes.
func TestChainThatDoublesIsNotInlinedWhole(t *testing.T) {
	last := expr.NewInput("x", array.Float32, 64)
	for range 20 {
		before := last
		last = expr.Compute("y", []int64{64}, func(i []expr.Expr) expr.Expr {
			return expr.AddE(before.At(i...), expr.MulE(before.At(i...), before.At(i...)))
		})
	}
	w, err := expr.NewWorkload([]*expr.Tensor{last})
	if err != nil {
		t.Fatal(err)
	}
	s := New(w, Target(t, "x86-64-v3"), schedule.Default)
	applied, err := s.Apply(s.Default())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lower.Schedule(applied); err != nil {
		t.Error(err)
	}
}

// TestTwoReductionsThatMeetInOneMap checks that the map ends one of them, and that the other ends itself.
func TestTwoReductionsThatMeetInOneMap(t *testing.T) {
	product := func(name string) *expr.Tensor {
		x, w := expr.NewInput(name, array.Float32, 12, 20), expr.NewConstant(name+"w", array.Float32, 20, 24)
		return expr.ReduceOver(name, expr.Sum, []int64{12, 24}, []int64{20}, func(i, r []expr.Expr) expr.Expr {
			return expr.MulE(x.At(i[0], r[0]), w.At(r[0], i[1]))
		})
	}
	a, b := product("a"), product("b")
	both := expr.Compute("both", a.Shape, func(i []expr.Expr) expr.Expr { return expr.MulE(a.At(i...), b.At(i...)) })
	w, err := expr.NewWorkload([]*expr.Tensor{both})
	if err != nil {
		t.Fatal(err)
	}
	s := New(w, Target(t, "x86-64-v3"), schedule.Default)
	applied, err := s.Apply(s.Default())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lower.Schedule(applied); err != nil {
		t.Fatal(err)
	}
}

// TestSumOfEverythingHasASchedule covers a result without an axis to tile.
func TestSumOfEverythingHasASchedule(t *testing.T) {
	x := expr.NewInput("x", array.Float32, 30, 20)
	sum := expr.ReduceOver("sum", expr.Sum, nil, []int64{30, 20}, func(_, r []expr.Expr) expr.Expr { return x.At(r[0], r[1]) })
	root := expr.Compute("root", nil, func([]expr.Expr) expr.Expr { return expr.Un(expr.Sqrt, sum.At()) })
	largest := expr.ReduceOver("largest", expr.Maximum, nil, []int64{30, 20}, func(_, r []expr.Expr) expr.Expr { return x.At(r[0], r[1]) })
	for name, out := range map[string][]*expr.Tensor{"a sum": {sum}, "a sum and a map": {root}, "a sum and a maximum": {sum, largest}} {
		w, err := expr.NewWorkload(out)
		if err != nil {
			t.Fatal(err)
		}
		s := New(w, Target(t, "x86-64-v3"), schedule.Default)
		applied, err := s.Apply(s.Default())
		if err == nil {
			_, err = lower.Schedule(applied)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkDefault(b *testing.B) {
	w, t := Conv(b, 28, 128), Target(b, "x86-64-v3")
	for b.Loop() {
		s := New(w, t, schedule.Default)
		s.Default()
	}
}

// TestOutputsInAChainShareANest checks that each output but the last belongs only to the nest of the last.
func TestOutputsInAChainShareANest(t *testing.T) {
	x := expr.NewInput("x", array.Float32, 30, 20)
	outputs, last := []*expr.Tensor{}, x
	for range 4 {
		from := last
		last = expr.Compute("o", x.Shape, func(i []expr.Expr) expr.Expr { return expr.MulE(from.At(i...), from.At(i...)) })
		outputs = append(outputs, last)
	}
	w, err := expr.NewWorkload(outputs)
	if err != nil {
		t.Fatal(err)
	}
	s := New(w, Target(t, "x86-64-v3"), schedule.Default)
	applied, err := s.Apply(s.Default())
	if err == nil {
		_, err = lower.Schedule(applied)
	}
	if err != nil {
		t.Error(err)
	}
}
