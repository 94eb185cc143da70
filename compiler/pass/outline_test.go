package pass_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// TestParallelLoopsTellWhatTheyUse checks the captured batch number and sums.
func TestParallelLoopsTellWhatTheyUse(t *testing.T) {
	f := unrolled(t, `input t0 f32[3,512,16]
sum t1 f32[3,512] over 16 = [t0 i0 i1 r0]
map t2 f32[3,512] = (sub [t1 i0 i1] [t1 i0 511])
output t2
`, "compute-at 0 1 0\nparallel 1 1\n")
	f = pass.Storage(f, pass.StorageLimits{StackBytes: 1 << 10, FrameBytes: 1 << 10, AlignBytes: 64})
	kerneltest.Golden(t, "outline/before", f)
	kerneltest.Golden(t, "outline/after", pass.Outline(f))
}
