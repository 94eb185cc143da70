package pass_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/ir/irtest"
	"github.com/tilth-dev/tilth/compiler/pass"
)

// TestThreadsWaitBeforeAndBehindSharedMemory: threads wait for elements to arrive, and for their readers before the
// next step overwrites them. Registers need no barrier.
func TestThreadsWaitBeforeAndBehindSharedMemory(t *testing.T) {
	f, err := pass.Threads(irtest.Replayed(t, irtest.Product, irtest.Tiles))
	if err != nil {
		t.Fatal(err)
	}
	if f, err = pass.Spread(f); err != nil {
		t.Fatal(err)
	}
	irtest.Golden(t, "barrier/before", f)
	irtest.Golden(t, "barrier/after", pass.Barrier(f))
}

// TestBoxesNeedNoBarrierBehindTheirPhase: box copies need neither barrier nor fence after their phase. Only copies
// that overwrite them wait for their readers, and the end of the phases for the waiting threads.
func TestBoxesNeedNoBarrierBehindTheirPhase(t *testing.T) {
	f, err := pass.Threads(irtest.Replayed(t, irtest.WarpgroupProducts, irtest.WarpgroupLoop))
	if err != nil {
		t.Fatal(err)
	}
	if f, err = pass.Spread(pass.Pipeline(pass.Wide(f))); err != nil {
		t.Fatal(err)
	}
	irtest.Golden(t, "barrier/boxes", pass.Barrier(pass.Products(pass.Tensorize(f))))
}

// TestWhatProductsReadIsFenced checks for a fence before the barrier that precedes products, only after writes by
// threads.
func TestWhatProductsReadIsFenced(t *testing.T) {
	f, err := pass.Threads(irtest.Replayed(t, irtest.WarpgroupProduct, irtest.WarpgroupTile))
	if err != nil {
		t.Fatal(err)
	}
	if f, err = pass.Spread(pass.Pipeline(pass.Wide(f))); err != nil {
		t.Fatal(err)
	}
	irtest.Golden(t, "barrier/warpgroup", pass.Barrier(pass.Products(pass.Tensorize(f))))
}

// TestMatricesAreLoadedBehindABarrier: a thread addresses rows that others have stored.
func TestMatricesAreLoadedBehindABarrier(t *testing.T) {
	f, err := pass.Threads(irtest.Replayed(t, irtest.NarrowProduct, irtest.WarpMatrices))
	if err != nil {
		t.Fatal(err)
	}
	if f, err = pass.Spread(f); err != nil {
		t.Fatal(err)
	}
	irtest.Golden(t, "barrier/matrices", pass.Barrier(pass.Tensorize(f)))
}

// TestTilesThatABlockWalksOver: tiles share memory, so threads wait before the next tile, but no tile needs global
// memory written by another.
func TestTilesThatABlockWalksOver(t *testing.T) {
	f, err := pass.Threads(irtest.Replayed(t, irtest.Product, irtest.Tiles+"persist 0 4\nstreamk 1 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if f, err = pass.Spread(f); err != nil {
		t.Fatal(err)
	}
	irtest.Golden(t, "barrier/walk", pass.Barrier(f))
}
