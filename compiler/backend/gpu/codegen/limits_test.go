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
