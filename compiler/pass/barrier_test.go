package pass_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// TestThreadsWaitBeforeAndBehindSharedMemory: threads wait for elements to arrive, and for their readers before the
// next step overwrites them. Registers need no barrier.
func TestThreadsWaitBeforeAndBehindSharedMemory(t *testing.T) {
	f, err := pass.Threads(kerneltest.Replayed(t, kerneltest.TileProduct, kerneltest.Tiles))
	if err != nil {
		t.Fatal(err)
	}
	if f, err = pass.Spread(f); err != nil {
		t.Fatal(err)
	}
	kerneltest.Golden(t, "barrier/before", f)
	kerneltest.Golden(t, "barrier/after", pass.Barrier(f))
}

// TestTMACopiesNeedNoBarrierAfterTheirPhase: box copies need neither barrier nor fence after their phase. Only copies
// that overwrite them wait for their readers, and the end of the phases for the waiting threads.
func TestTMACopiesNeedNoBarrierAfterTheirPhase(t *testing.T) {
	f, err := pass.Threads(kerneltest.Replayed(t, kerneltest.WarpgroupProducts, kerneltest.WarpgroupLoop))
	if err != nil {
		t.Fatal(err)
	}
	if f, err = pass.Spread(pass.Pipeline(pass.Wide(f))); err != nil {
		t.Fatal(err)
	}
	kerneltest.Golden(t, "barrier/boxes", pass.Barrier(pass.Products(pass.Tensorize(f))))
}

// TestWarpgroupOperandsAreFenced checks for a fence before the barrier that precedes products, only after writes by
// threads.
func TestWarpgroupOperandsAreFenced(t *testing.T) {
	f, err := pass.Threads(kerneltest.Replayed(t, kerneltest.WarpgroupProduct, kerneltest.WarpgroupTile))
	if err != nil {
		t.Fatal(err)
	}
	if f, err = pass.Spread(pass.Pipeline(pass.Wide(f))); err != nil {
		t.Fatal(err)
	}
	kerneltest.Golden(t, "barrier/warpgroup", pass.Barrier(pass.Products(pass.Tensorize(f))))
}

// TestMatricesAreLoadedBehindABarrier: a thread addresses rows that others have stored.
func TestMatricesAreLoadedBehindABarrier(t *testing.T) {
	f, err := pass.Threads(kerneltest.Replayed(t, kerneltest.NarrowProduct, kerneltest.WarpMatrices))
	if err != nil {
		t.Fatal(err)
	}
	if f, err = pass.Spread(f); err != nil {
		t.Fatal(err)
	}
	kerneltest.Golden(t, "barrier/matrices", pass.Barrier(pass.Tensorize(f)))
}

// TestTilesThatABlockWalksOver: tiles share memory, so threads wait before the next tile, but no tile needs global
// memory written by another.
func TestTilesThatABlockWalksOver(t *testing.T) {
	f, err := pass.Threads(kerneltest.Replayed(t, kerneltest.TileProduct, kerneltest.Tiles+"persist 0 4\nstreamk 1 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if f, err = pass.Spread(f); err != nil {
		t.Fatal(err)
	}
	kerneltest.Golden(t, "barrier/walk", pass.Barrier(f))
}
