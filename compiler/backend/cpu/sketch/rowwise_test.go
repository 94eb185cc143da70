package sketch_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// TestSumAcrossSoftmaxesLowers covers a last stage that reduces, with the contiguous axis shared by all stages.
func TestSumAcrossSoftmaxesLowers(t *testing.T) {
	w, err := expr.Parse(`tilth-workload 1
input t0 f32[5,10]
max t1 f32[5,10] over 1 = [t0 i0 i1]
map t2 f32[5,10] = (exp (sub [t0 i0 i1] [t1 i0 i1]))
sum t3 f32[5,10] over 1 = [t2 i0 i1]
map t4 f32[5,10] = (div [t2 i0 i1] [t3 i0 i1])
sum t5 f32[10] over 5 = [t4 r0 i0]
output t5
`)
	if err != nil {
		t.Fatal(err)
	}
	s, rng := sketch.New(w, sketch.Target(t, "x86-64-v3"), schedule.Default), rand.New(rand.NewPCG(1, 1))
	for range 50 {
		p, ok := s.Random(rng)
		if !ok {
			t.Fatal("no legal point")
		}
		scheduled, err := s.Apply(p)
		if err == nil {
			_, err = lower.Schedule(scheduled)
		}
		if err != nil {
			t.Fatalf("%s: %v", s.Format(p), err)
		}
	}
}

// TestRowReductionsAreFactored covers a shared last axis of the result with contiguous rows.
func TestRowReductionsAreFactored(t *testing.T) {
	w, err := expr.Parse(`tilth-workload 1
input t0 f32[16,4096]
sum t1 f32[16] over 4096 = (mul [t0 i0 r0] [t0 i0 r0])
map t2 f32[16] = (sqrt [t1 i0])
output t2
`)
	if err != nil {
		t.Fatal(err)
	}
	s := sketch.New(w, sketch.Target(t, "x86-64-v3"), schedule.Default)
	scheduled, err := s.Apply(s.Default())
	if err != nil {
		t.Fatal(err)
	}
	if trace := string(scheduled.Trace()); !strings.Contains(trace, "rfactor") {
		t.Errorf("no partial results in lanes:\n%s", trace)
	}
}
