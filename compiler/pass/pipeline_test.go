package pass_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// TestTMACopiesArePipelined beside copies of all threads: one thread begins those of a step for all, and all wait for
// the phase of the step's mbarrier.
func TestTMACopiesArePipelined(t *testing.T) {
	f, err := pass.Threads(kerneltest.Replayed(t, kerneltest.WarpgroupProduct, kerneltest.WarpgroupBoxAndCopy))
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.Golden(t, "pipeline/boxes_and_copies", pass.Pipeline(pass.Wide(f)))
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
