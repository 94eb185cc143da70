package cost_test

import (
	"math"
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// TestWavesAndTailsOfPersistentBlocks uses six tiles of three steps. Four blocks have at most two tiles, half more
// than on average. Stream-K shares of all steps leave no block more than a step above the average. The work is the
// same.
func TestWavesAndTailsOfPersistentBlocks(t *testing.T) {
	for how, want := range map[string]struct {
		tiles            int64
		max, waves, tail float64
		launches         int
	}{
		"":                             {6, 1, 6.0 / 32, 32.0 / 6, 1},
		"persist 0 4\n":                {6, 2, 1.5, 2 / 1.5, 1},
		"persist 0 4\nstreamk 1 1\n":   {6, 5.0 / 3, 1.5, 5 / 3.0 / 1.5, 2},
		"persist 0 16\nstreamk 1 1\n":  {6, 2.0 / 3, 6.0 / 16, 2 / 3.0 * 16 / 6, 2},
		"persist 0 4\nraster 0 2\n":    {6, 2, 1.5, 2 / 1.5, 1},
		"persist 0 1000\nraster 0 2\n": {6, 1, 6.0 / 32, 32.0 / 6, 1},
	} {
		a := analysed(t, kerneltest.TileProduct, kerneltest.TilesOf(2)+how)
		l := a.Launches[0]
		c := a.Cycles(l)
		if len(a.Launches) != want.launches || l.Tiles != want.tiles || math.Abs(l.Max-want.max) > 1e-9 || math.Abs(c.Waves-want.waves) > 1e-9 || math.Abs(c.Tail-want.tail) > 1e-9 {
			t.Errorf("%q: %d launches, %d tiles, at most %v of a block, %v waves, tail %v; want %+v", how, len(a.Launches), l.Tiles, l.Max, c.Waves, c.Tail, want)
		}
		if done := l.Operations.MultiplyAdds * float64(l.Blocks); math.Abs(done-12*16*6) > 1e-6 {
			t.Errorf("%q: %v multiplications and additions, want %d", how, done, 12*16*6)
		}
	}
}

// TestPrefetchingTilesWaitOnlyForTheFirst covers tiles whose last steps prefetch for the next one.
func TestPrefetchingTilesWaitOnlyForTheFirst(t *testing.T) {
	for how, want := range map[string]float64{
		"pipeline 2 2\n": 1, "persist 0 4\n": 2, "pipeline 2 2\npersist 0 4\n": 1, "pipeline 2 2\npersist 0 4\nstreamk 1 1\n": 5.0 / 3,
	} {
		if l := analysed(t, kerneltest.TileProduct, kerneltest.TilesOf(2)+how).Launches[0]; math.Abs(l.Begun-want) > 1e-9 {
			t.Errorf("%q: a block waits for the beginning of %v tiles, want %v", how, l.Begun, want)
		}
	}
}
