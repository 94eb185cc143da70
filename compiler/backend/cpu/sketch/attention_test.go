package sketch_test

import (
	"math/rand/v2"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	common "github.com/tilth-dev/tilth/compiler/sketch"
)

// attentionOfOneTerm is softmax attention whose scores are an outer product: its keys are a row, not a matrix.
const attentionOfOneTerm = `tilth-workload 1
input t0 f32[2]
input t1 f32[2]
input t2 f32[2,2]
input t3 f32[2,2]
map t4 f32[2] = [t1 i0]
sum t5 f32[2,2] over 1 = (mul [t0 i0] [t4 i1])
map t6 f32[2,2] = (add [t5 i0 i1] [t2 i0 i1])
max t7 f32[2] over 2 = [t6 i0 r0]
map t8 f32[2,2] = (exp (sub [t6 i0 i1] [t7 i0]))
map t9 f32[2,2] = [t3 i0 i1]
sum t10 f32[2,2] over 2 = (mul [t8 i0 r0] [t9 r0 i1])
sum t11 f32[2] over 2 = [t8 i0 r0]
map t12 f32[2] = (div 0x1p+00:f32 [t11 i0])
map t13 f32[2,2] = (mul [t10 i0 i1] [t12 i0])
output t13
`

func TestEveryPointOfAnAttentionOfOneTermApplies(t *testing.T) {
	everyPointApplies(t, attentionOfOneTerm)
}

// attentionOfOneRow has three heads with one row each, and no axis of rows.
const attentionOfOneRow = `tilth-workload 1
input t0 f32[3,64]
input t1 f32[3,20,64]
input t2 f32[3,20,40]
map t3 f32[3,64,20] = [t1 i0 i2 i1]
sum t4 f32[3,20] over 64 = (mul [t0 i0 r0] [t3 i0 r0 i1])
map t5 f32[3,20] = (mul [t4 i0 i1] 0x1p-03:f32)
max t6 f32[3] over 20 = [t5 i0 r0]
map t7 f32[3,20] = (exp (sub [t5 i0 i1] [t6 i0]))
map t8 f32[3,20,40] = [t2 i0 i1 i2]
sum t9 f32[3,40] over 20 = (mul [t7 i0 r0] [t8 i0 r0 i1])
sum t10 f32[3] over 20 = [t7 i0 r0]
map t11 f32[3] = (div 0x1p+00:f32 [t10 i0])
map t12 f32[3,40] = (mul [t9 i0 i1] [t11 i0])
output t12
`

func TestAttentionOfOneRowIsAttention(t *testing.T) {
	w := parsed(t, attentionOfOneRow)
	if a := common.MatchAttention(w); a == nil || !a.Single || a.M != 1 || a.Batches != 3 || a.N != 20 || a.D != 64 || a.E != 40 {
		t.Errorf("found %+v", a)
	}
	everyPointApplies(t, attentionOfOneRow)
}

func parsed(t *testing.T, text string) *expr.Workload {
	t.Helper()
	w, err := expr.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func everyPointApplies(t *testing.T, text string) {
	t.Helper()
	w := parsed(t, text)
	s, rng := sketch.New(w, sketch.Target(t, "x86-64-v3"), schedule.Default), rand.New(rand.NewPCG(1, 1))
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
