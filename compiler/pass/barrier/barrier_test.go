package barrier_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/ir/irtest"
	"github.com/tilth-dev/tilth/compiler/pass/barrier"
	"github.com/tilth-dev/tilth/compiler/pass/spread"
	"github.com/tilth-dev/tilth/compiler/pass/threads"
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
