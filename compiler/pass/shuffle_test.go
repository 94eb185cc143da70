package pass_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// rows is sums of sixteen rows, eight in a block, of which four threads add up each: a quarter of its elements, and
// what the others have.
const rows = "input t0 f32[16,64]\nsum t1 f32[16] over 64 = [t0 i0 r0]\nmap t2 f32[16] = (add [t1 i0] [t1 i0])\noutput t2\n"

// onBlocks returns a schedule in a block.
func onBlocks(trace string) string {
	return "split 1 0 8 0\nbind 1 1 0\nbind 1 2 1\n" + trace + "compute-at 0 1 1\nscope 0 1\ncompute-at 2 1 1\nscope 2 1\n"
}

// four has four threads add up a row.
const four = "rfactor 0 0 4 0\nreorder 2 0 1 2\nfuse 2 0 1\nbind 2 3 1\nbind 0 0 1\nshuffle 0 1\n"

// TestShuffleFallsBackToSharedMemory checks thread counts other than powers of two, and other orders.
func TestShuffleFallsBackToSharedMemory(t *testing.T) {
	for name, trace := range map[string]string{
		"three threads a row":                 strings.Replace(four, "rfactor 0 0 4", "rfactor 0 0 3", 1),
		"neighbours belong to different rows": strings.Replace(four, "reorder 2 0 1 2\nfuse 2 0 1", "reorder 2 1 0 2\nfuse 2 1 0", 1),
		"half a warp":                         strings.Replace(four, "rfactor 0 0 4", "rfactor 0 0 2", 1),
	} {
		got := pass.Shuffle(kerneltest.Replayed(t, rows, onBlocks(trace)), true).Text()
		if strings.Contains(got, "shuffle") || strings.Contains(got, "lanewise") || !strings.Contains(got, "shared s2") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// TestWithoutWarpsAllGoesThroughSharedMemory, what would fit as well.
func TestWithoutWarpsAllGoesThroughSharedMemory(t *testing.T) {
	got := pass.Shuffle(kerneltest.Replayed(t, rows, onBlocks(four)), false).Text()
	if strings.Contains(got, "shuffle") || strings.Contains(got, "lanewise") || !strings.Contains(got, "shared s2") {
		t.Error(got)
	}
}
