package codegen_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/codegen"
	"github.com/tilth-dev/tilth/compiler/backend/gpusim"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// TestCardsLimitsAreKnownBeforeCompiling checks that a schedule for a large GPU is refused for a smaller one with an
// error that names the limit.
func TestCardsLimitsAreKnownBeforeCompiling(t *testing.T) {
	b := gpusim.Backend{}
	on, err := b.Target(b.Targets()[0].Name, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := restricted(t, b.Space(kerneltest.Product(t, 512, 512, 512), on, schedule.Strict), map[string]int64{
		"tall": 16, "wide": 16, "rows": 8, "columns": 8, "parts": 1, "cut": 0, "walkers": 0,
	})
	made, err := s.Apply(s.Default())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := codegen.Lower(made, on.GPU); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want string
		less func(g *target.GPU)
	}{
		{"a block has 256 threads, more than the 128 of", func(g *target.GPU) { g.BlockThreads = 128 }},
		{"bytes of shared memory, more than the 64 of", func(g *target.GPU) { g.BlockSharedBytes = 64 }},
		{"more than the 32 registers of", func(g *target.GPU) { g.ThreadRegisters = 32 }},
	} {
		smaller := *on.GPU
		c.less(&smaller)
		if _, err := codegen.Lower(made, &smaller); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("the error is %v, want %s", err, c.want)
		}
	}
}

// attention has eight heads with scaled and masked scores.
const attention = `input t0 f32[8,256,64]
input t1 f32[8,%[1]d,64]
input t2 bool[256,%[1]d]
input t3 f32[8,%[1]d,64]
map t4 f32[8,64,%[1]d] = [t1 i0 i2 i1]
sum t5 f32[8,256,%[1]d] over 64 = (mul [t0 i0 i1 r0] [t4 i0 r0 i2])
map t6 f32[8,256,%[1]d] = (select [t2 i1 i2] (mul [t5 i0 i1 i2] 0x1p-03:f32) -0x1.fffffep+127:f32)
max t7 f32[8,256] over %[1]d = [t6 i0 i1 r0]
map t8 f32[8,256,%[1]d] = (exp (sub [t6 i0 i1 i2] [t7 i0 i1]))
map t9 f32[8,%[1]d,64] = [t3 i0 i1 i2]
sum t10 f32[8,256,64] over %[1]d = (mul [t8 i0 i1 r0] [t9 i0 r0 i2])
sum t11 f32[8,256] over %[1]d = [t8 i0 i1 r0]
map t12 f32[8,256] = (div 0x1p+00:f32 [t11 i0 i1])
map t13 f32[8,256,64] = (mul [t10 i0 i1 i2] [t12 i0 i1])
output t13
`

// TestAttentionFitsTheRegistersOfItsCard checks that a GPU with few registers gets fewer threads or smaller tiles.
func TestAttentionFitsTheRegistersOfItsCard(t *testing.T) {
	b := gpusim.Backend{}
	on, err := b.Target(b.Targets()[0].Name, 1)
	if err != nil {
		t.Fatal(err)
	}
	on.GPU.MultiprocessorRegisters = 16 << 10
	s := b.Space(parsed(t, fmt.Sprintf(attention, 197)), on, schedule.Default)
	rng, lowered := rand.New(rand.NewPCG(1, 1)), 0
	for range 60 {
		p, ok := s.Random(rng)
		if !ok {
			continue
		}
		made, err := s.Apply(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := codegen.Lower(made, on.GPU); err != nil {
			t.Errorf("%s: %v", s.Format(p), err)
		}
		lowered++
	}
	if lowered < 10 {
		t.Errorf("%d points were drawn", lowered)
	}
}
