package sketch_test

import (
	"math/rand/v2"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// TestPartsOfSumsHaveScalesOfBlocks covers weights with a scale per 32 terms and parts of sums with 48: the block of
// a term is not a quotient of a single variable.
func TestPartsOfSumsHaveScalesOfBlocks(t *testing.T) {
	w, err := expr.Parse(`tilth-workload 1
input t0 f32[64,96]
constant t1 i8[96,64]
constant t2 f32[3,64]
sum t3 f32[64,64] over 96 = (mul [t0 i0 r0] (mul (cast f32 [t1 r0 i1]) [t2 (floordiv r0 32) i1]))
output t3
`)
	if err != nil {
		t.Fatal(err)
	}
	s := sketch.New(w, card(t), schedule.Strict)
	rng, applied := rand.New(rand.NewPCG(1, 1)), 0
	for range 200 {
		p, ok := s.Random(rng)
		if !ok {
			continue
		}
		if _, err := s.Apply(p); err != nil {
			t.Fatalf("%s: %v", s.Format(p), err)
		}
		applied++
	}
	if applied == 0 {
		t.Error("there are no points")
	}
}
