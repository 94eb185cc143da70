package sketch_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/sketch"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// card returns a GPU with 132 multiprocessors and 50 MiB of cache.
func card(t *testing.T) *target.Target {
	t.Helper()
	on, err := target.Parse("x86-64-v3", 1)
	if err != nil {
		t.Fatal(err)
	}
	on.GPU = &target.GPU{Arch: "sm_90a", Model: "of tests", Multiprocessors: 132, WarpThreads: 32, BlockThreads: 1024, MultiprocessorThreads: 2048,
		ThreadRegisters: 255, MultiprocessorRegisters: 64 << 10, BlockSharedBytes: 227 << 10, MultiprocessorSharedBytes: 228 << 10, L2Bytes: 50 << 20}
	return on
}

// tile is an algorithm with the knobs of a tile.
type tile struct {
	algorithm string
	knobs     map[string]int64
}

// Tiles of 128 by 128 results for warps, and of 64 by 64 for a warpgroup.
var (
	ofWarps     = tile{"F16", map[string]int64{"tall": 2, "wide": 4, "rows": 4, "columns": 4, "depth": 4, "stages": 3, "parts": 1}}
	ofWarpgroup = tile{"warpgroup F16", map[string]int64{"tall": 1, "wide": 1, "rows": 1, "columns": 8, "depth": 4, "stages": 4, "parts": 1}}
)

// costs returns the costs of a product of halves by tiles for several tile schedulers: the persistent blocks
// per multiprocessor, the raster width, and the number of Stream-K rounds of each.
func costs(t *testing.T, x tile, m, n, k int64, walks ...[3]int64) (list []float64) {
	t.Helper()
	s := sketch.New(kerneltest.ProductOf(t, array.Float16, m, k, n), card(t), schedule.Strict)
	s = s.Of(s.Algorithms()[slices.IndexFunc(s.Algorithms(), func(a searchspace.Algorithm) bool { return a.Name == x.algorithm })])
	for _, w := range walks {
		p, knobs := s.Default(), maps.Clone(x.knobs)
		knobs["walkers"], knobs["band"], knobs["cut"] = w[0], w[1], w[2]
		for k, knob := range s.Knobs {
			if v, ok := knobs[knob.Name]; ok && s.Active(p, k) {
				p[k] = slices.Index(knob.Values, v)
			}
		}
		if err := s.Legal(p); err != nil {
			t.Fatalf("%v: %v", w, err)
		}
		list = append(list, s.Cost(p))
	}
	return list
}

// TestStreamKShortensTheTail uses 272 tiles on 132 multiprocessors: the last of three rounds has 8 tiles. Persistent
// blocks alone do not shorten it; Stream-K shares do, although few blocks then add up the parts.
func TestStreamKShortensTheTail(t *testing.T) {
	list := costs(t, ofWarps, 16*128, 17*128, 4096, [3]int64{1, 1, 0}, [3]int64{1, 1, 1}, [3]int64{1, 1, 2})
	for _, cut := range list[1:] {
		if cut > 0.97*list[0] || cut < 0.6*list[0] {
			t.Errorf("rounds without cuts cost %v, with cuts %v", list[0], list[1:])
		}
	}
}

// TestRasterBandsReduceMemoryTraffic checks that bands help if operands exceed the cache, and change nothing
// otherwise.
func TestRasterBandsReduceMemoryTraffic(t *testing.T) {
	if list := costs(t, ofWarpgroup, 2048, 2048, 512, [3]int64{1, 1, 0}, [3]int64{1, 8, 0}); list[0] != list[1] {
		t.Errorf("bands of operands that are in the cache cost %v", list)
	}
	if list := costs(t, ofWarpgroup, 256*128, 256*128, 512, [3]int64{1, 1, 0}, [3]int64{1, 8, 0}); list[1] > 0.95*list[0] {
		t.Errorf("bands of large operands cost %v", list)
	}
}
