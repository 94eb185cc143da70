package sketch

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
)

func winogradSpace(t testing.TB) *searchspace.Space {
	return New(Conv(t, 14, 64), Target(t, "x86-64-v3"), schedule.Default)
}

func TestNumericsSayWhichAlgorithmsThereAre(t *testing.T) {
	w, target := Conv(t, 14, 64), Target(t, "x86-64-v3")
	for level, want := range map[schedule.Numerics]bool{schedule.Strict: false, schedule.Default: true, schedule.Fast: true} {
		s := New(w, target, level)
		if got := len(s.Algorithms()) > 1; got != want {
			t.Errorf("%v: a choice of algorithms: %v", level, got)
		}
		rng := rand.New(rand.NewPCG(1, 1))
		for range 50 {
			p, _ := s.Random(rng)
			applied, err := s.Apply(p)
			if err != nil || applied.Numerics() > level {
				t.Errorf("%v: point %s needs %v, %v", level, s.Format(p), applied.Numerics(), err)
			}
		}
	}
}

// TestKnobsOfOtherAlgorithmsMakeNoPoints checks that a program is a single point, regardless of how it is reached.
func TestKnobsOfOtherAlgorithmsMakeNoPoints(t *testing.T) {
	s := winogradSpace(t)
	rng := rand.New(rand.NewPCG(2, 2))
	check := func(p searchspace.Point, what string) {
		t.Helper()
		for k, v := range p {
			if v != 0 && !s.Active(p, k) {
				t.Errorf("%s: knob %s of another algorithm has choice %d", what, s.Knobs[k].Name, v)
			}
		}
	}
	algorithms := map[searchspace.Algorithm]bool{}
	for range 200 {
		a, _ := s.Random(rng)
		b, _ := s.Random(rng)
		algorithms[s.Algorithm(a)] = true
		check(a, "random")
		if q, ok := s.Mutate(rng, a); ok {
			check(q, "mutate")
		}
		if q, ok := s.Crossover(rng, a, b); ok {
			check(q, "crossover")
			if direct := s.Algorithm(q) == searchspace.Direct; direct != (s.Algorithm(a) == searchspace.Direct) || direct != (s.Algorithm(b) == searchspace.Direct) {
				t.Errorf("%s and %s bred %s", s.Format(a), s.Format(b), s.Format(q))
			}
		}
		if q, ok := s.Parse(s.Format(a)); !ok || !slices.Equal(q, a) {
			t.Errorf("%s is read back as %s", s.Format(a), s.Format(q))
		}
	}
	if len(algorithms) != 4 {
		t.Errorf("random points have %d algorithms", len(algorithms))
	}
	for _, p := range s.Neighbours(s.Default()) {
		check(p, "neighbour")
	}
	for _, p := range s.Seeds() {
		check(p, "seed")
	}
}

func TestMutationReachesEveryAlgorithm(t *testing.T) {
	s := winogradSpace(t)
	rng := rand.New(rand.NewPCG(3, 3))
	p := make(searchspace.Point, len(s.Knobs))
	seen := map[searchspace.Algorithm]bool{}
	for range 500 {
		if q, ok := s.Mutate(rng, p); ok {
			p = q
		}
		seen[s.Algorithm(p)] = true
	}
	if len(seen) != 4 {
		t.Errorf("saw %v", seen)
	}
}

// TestCostChoosesTheAlgorithm checks that many tiles per weight pay for the transforms, and that a kernel over one
// channel does not.
func TestCostChoosesTheAlgorithm(t *testing.T) {
	for _, c := range []struct {
		size, channels int64
		want           searchspace.Algorithm
	}{{56, 64, F4x4}, {28, 128, F4x4}, {14, 256, F4x4}, {8, 1, searchspace.Direct}} {
		s := New(Conv(t, c.size, c.channels), Target(t, "x86-64-v3"), schedule.Default)
		if s.Algorithm(s.Default()) != c.want {
			t.Errorf("%dx%d with %d channels: %s", c.size, c.size, c.channels, s.Format(s.Default()))
		}
	}
}

// TestEveryPointOfAConvolutionThatIsReadTwiceApplies covers a stored sum with a stored map.
func TestEveryPointOfAConvolutionThatIsReadTwiceApplies(t *testing.T) {
	sum := Conv(t, 14, 16).Outputs[0]
	scaled := expr.Compute("scaled", sum.Shape, func(i []expr.Expr) expr.Expr { return expr.MulE(sum.At(i...), sum.At(i...)) })
	w, err := expr.NewWorkload([]*expr.Tensor{sum, scaled})
	if err != nil {
		t.Fatal(err)
	}
	s, rng := New(w, Target(t, "x86-64-v3"), schedule.Default), rand.New(rand.NewPCG(1, 1))
	for range 50 {
		p, ok := s.Random(rng)
		if !ok {
			t.Fatal("no legal point")
		}
		if _, err := s.Apply(p); err != nil {
			t.Fatalf("%s: %v", s.Format(p), err)
		}
	}
}
