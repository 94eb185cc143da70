package barrier_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/ir/irtest"
	"github.com/tilth-dev/tilth/compiler/pass/barrier"
	"github.com/tilth-dev/tilth/compiler/pass/pipeline"
	"github.com/tilth-dev/tilth/compiler/pass/products"
	"github.com/tilth-dev/tilth/compiler/pass/spread"
	"github.com/tilth-dev/tilth/compiler/pass/tensorize"
	"github.com/tilth-dev/tilth/compiler/pass/threads"
	"github.com/tilth-dev/tilth/compiler/pass/wide"
)

// TestThreadsWaitBeforeAndBehindSharedMemory: for its elements to be there, and for their readers before the next step
// overwrites them. Registers need no barrier.
func TestThreadsWaitBeforeAndBehindSharedMemory(t *testing.T) {
	f, err := threads.Run(irtest.Replayed(t, irtest.Product, irtest.Tiles))
	if err != nil {
		t.Fatal(err)
	}
	if f, err = spread.Run(f); err != nil {
		t.Fatal(err)
	}
	irtest.Golden(t, "before", f)
	irtest.Golden(t, "after", barrier.Run(f))
}

// TestBoxesNeedNoBarrierBehindTheirPhase, and no fence: only what is copied over them waits for those who have read
// them, and the end of their phases for those who wait.
func TestBoxesNeedNoBarrierBehindTheirPhase(t *testing.T) {
	f, err := threads.Run(irtest.Replayed(t, irtest.WarpgroupProducts, irtest.WarpgroupLoop))
	if err != nil {
		t.Fatal(err)
	}
	if f, err = spread.Run(pipeline.Run(wide.Run(f))); err != nil {
		t.Fatal(err)
	}
	irtest.Golden(t, "boxes", barrier.Run(products.Run(tensorize.Run(f))))
}

// TestWhatProductsReadIsFenced before the barrier behind which they begin, and only where threads have written it.
func TestWhatProductsReadIsFenced(t *testing.T) {
	f, err := threads.Run(irtest.Replayed(t, irtest.WarpgroupProduct, irtest.WarpgroupTile))
	if err != nil {
		t.Fatal(err)
	}
	if f, err = spread.Run(pipeline.Run(wide.Run(f))); err != nil {
		t.Fatal(err)
	}
	irtest.Golden(t, "warpgroup", barrier.Run(products.Run(tensorize.Run(f))))
}

// TestMatricesAreLoadedBehindABarrier: a thread names rows that others have stored.
func TestMatricesAreLoadedBehindABarrier(t *testing.T) {
	f, err := threads.Run(irtest.Replayed(t, irtest.NarrowProduct, irtest.WarpMatrices))
	if err != nil {
		t.Fatal(err)
	}
	if f, err = spread.Run(f); err != nil {
		t.Fatal(err)
	}
	irtest.Golden(t, "matrices", barrier.Run(tensorize.Run(f)))
}

// TestTilesThatABlockWalksOver share memory, so that threads wait before the next one, but need nothing that another
// one stored.
func TestTilesThatABlockWalksOver(t *testing.T) {
	f, err := threads.Run(irtest.Replayed(t, irtest.Product, irtest.Tiles+"persist 0 4\nstreamk 1 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if f, err = spread.Run(f); err != nil {
		t.Fatal(err)
	}
	irtest.Golden(t, "walk", barrier.Run(f))
}
