package pass_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/ir/irtest"
	"github.com/tilth-dev/tilth/compiler/pass"
)

// TestThreadsWaitBeforeAndBehindSharedMemory: for its elements to be there, and for their readers before the next step
// overwrites them. Registers need no barrier.
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

// TestBoxesNeedNoBarrierBehindTheirPhase, and no fence: only what is copied over them waits for those who have read
// them, and the end of their phases for those who wait.
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

// TestWhatProductsReadIsFenced before the barrier behind which they begin, and only where threads have written it.
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

// TestMatricesAreLoadedBehindABarrier: a thread names rows that others have stored.
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

// TestTilesThatABlockWalksOver share memory, so that threads wait before the next one, but need nothing that another
// one stored.
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
