package pass_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// TestOperandsAreFetchedAhead checks a product in three steps, with copies of one operand issued one step ahead.
func TestOperandsAreFetchedAhead(t *testing.T) {
	f, err := pass.Threads(kerneltest.Replayed(t, kerneltest.TileProduct, kerneltest.TilesOf(2)+"pipeline 2 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.Golden(t, "pipeline/before", f)
	kerneltest.Golden(t, "pipeline/after", pass.Pipeline(f))
}

// TestProductsOfWarpgroupsLeaveAStepOfTheRing: those of the step before still read it.
func TestProductsOfWarpgroupsLeaveAStepOfTheRing(t *testing.T) {
	f, err := pass.Threads(kerneltest.Replayed(t, kerneltest.WarpgroupProduct, kerneltest.WarpgroupTile))
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.Golden(t, "pipeline/warpgroup", pass.Pipeline(pass.Wide(f)))
}

// TestTMACopiesArePipelined: one thread begins those of a step for all, whether or not all threads copy beside them,
// and all wait for the phase of the step's mbarrier.
func TestTMACopiesArePipelined(t *testing.T) {
	for name, trace := range map[string]string{"boxes": kerneltest.WarpgroupBoxes, "boxes_and_copies": kerneltest.WarpgroupBoxAndCopy} {
		f, err := pass.Threads(kerneltest.Replayed(t, kerneltest.WarpgroupProduct, trace))
		if err != nil {
			t.Fatal(err)
		}
		kerneltest.Golden(t, "pipeline/"+name, pass.Pipeline(pass.Wide(f)))
	}
}

// TestTMACopiesOfAStepShareAWait: there is nothing to compute between them.
func TestTMACopiesOfAStepShareAWait(t *testing.T) {
	f, err := pass.Threads(kerneltest.Replayed(t, kerneltest.WarpgroupProduct, strings.Replace(kerneltest.WarpgroupBoxes, "split 1 2 16 0", "split 1 2 64 0", 1)))
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.Golden(t, "pipeline/one_step", pass.Pipeline(f))
}

// TestPhasesEndWithTheirLoop where it is run again: others begin in the same place.
func TestPhasesEndWithTheirLoop(t *testing.T) {
	f, err := pass.Threads(kerneltest.Replayed(t, kerneltest.WarpgroupProducts, kerneltest.WarpgroupLoop))
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.Golden(t, "pipeline/looped", pass.Pipeline(f))
}

// TestAllIsFetchedBeforeALoopThatTheRingHasRoomFor, so that no step begins copies.
func TestAllIsFetchedBeforeALoopThatTheRingHasRoomFor(t *testing.T) {
	f, err := pass.Threads(kerneltest.Replayed(t, kerneltest.TileProduct, kerneltest.TilesOf(2)+"pipeline 2 3\n"))
	if err != nil {
		t.Fatal(err)
	}
	ir.Visit(pass.Pipeline(f).Body, func(st ir.Stmt) {
		if _, ok := st.(*ir.If); ok {
			t.Error("copies are begun under a condition")
		}
	})
}

// TestRingsAreNoLongerThanTheirLoop: of two steps both are under way at once.
func TestRingsAreNoLongerThanTheirLoop(t *testing.T) {
	f, err := pass.Threads(kerneltest.Replayed(t, kerneltest.TileProduct, kerneltest.TilesOf(3)+"pipeline 2 8\n"))
	if err != nil {
		t.Fatal(err)
	}
	ir.Visit(pass.Pipeline(f).Body, func(st ir.Stmt) {
		if a, ok := st.(*ir.Alloc); ok && a.Buffer.Space == ir.Shared && a.Buffer.Elements() != 2*12 {
			t.Errorf("the ring has %d elements", a.Buffer.Elements())
		}
	})
}

// TestSlotsOfRingsAreAligned: a step of six numbers takes a slot of eight, since a copy of 16 bytes may start at
// its first one.
func TestSlotsOfRingsAreAligned(t *testing.T) {
	tiles := strings.NewReplacer("split 0 0 4 0", "split 0 0 2 0", "split 0 3 2 0", "split 0 3 1 0", "split 1 0 2 0", "split 1 0 1 0")
	f, err := pass.Threads(kerneltest.Replayed(t, kerneltest.TileProduct, tiles.Replace(kerneltest.TilesOf(3))+"pipeline 2 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	elements := map[bool]int64{}
	for after, f := range map[bool]*ir.Func{false: f, true: pass.Pipeline(f)} {
		ir.Visit(f.Body, func(st ir.Stmt) {
			if a, ok := st.(*ir.Alloc); ok && a.Buffer.Space == ir.Shared {
				elements[after] = a.Buffer.Elements()
			}
		})
	}
	if elements[false] != 6 || elements[true] != 2*8 {
		t.Errorf("a buffer of %d elements has a ring of %d, want 6 and 16", elements[false], elements[true])
	}
}

// TestRingsRestartWithEachTile: a barrier separates the readers of a tile from the copies of the next one, and a share
// of steps is fetched from its first step on, before its end.
func TestRingsRestartWithEachTile(t *testing.T) {
	f, err := pass.Threads(kerneltest.Replayed(t, kerneltest.TileProduct, kerneltest.TilesOf(2)+"pipeline 2 2\npersist 0 4\nstreamk 1 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.Golden(t, "pipeline/walk", pass.Pipeline(f))
}

// TestNextTileIsFetchedAhead: the last steps of a tile start the first copies of the block's next tile, in the
// following slots, without a barrier in between.
func TestNextTileIsFetchedAhead(t *testing.T) {
	f, err := pass.Threads(kerneltest.Replayed(t, kerneltest.TileProduct, kerneltest.TilesOf(2)+"pipeline 2 2\npersist 0 4\nraster 0 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.Golden(t, "pipeline/continued", pass.Pipeline(f))
}

// TestStepsOfABlockAreCounted in 32 bits: where a block has more of them, no tile fetches for the next one.
func TestStepsOfABlockAreCounted(t *testing.T) {
	product := strings.NewReplacer("12,", "8388608,", "6", "2048", "16", "16").Replace(kerneltest.TileProduct)
	for walkers, want := range map[string]bool{"1": false, "2": false, "4": true} {
		f, err := pass.Threads(kerneltest.Replayed(t, product, kerneltest.TilesOf(2)+"pipeline 2 2\npersist 0 "+walkers+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(pass.Pipeline(f).Text(), "let turn"); got != want {
			t.Errorf("of %s blocks, the next tile is fetched ahead: %v, want %v", walkers, got, want)
		}
	}
}

// TestPhasesContinueAcrossTiles: after an odd number of uses of an mbarrier in a tile, the next tile starts with the
// other parity.
func TestPhasesContinueAcrossTiles(t *testing.T) {
	tiles := strings.ReplaceAll(kerneltest.WarpgroupProduct, "[64,64]", "[256,64]")
	f, err := pass.Threads(kerneltest.Replayed(t, strings.Replace(tiles, "f32[64,16]", "f32[256,16]", 1), kerneltest.WarpgroupBoxes+"persist 0 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.Golden(t, "pipeline/continued_boxes", pass.Pipeline(f))
}
