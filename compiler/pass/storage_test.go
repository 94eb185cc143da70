package pass_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// storageChain is four maps, each read by the next only.
const storageChain = `input t0 f32[64,64]
map t1 f32[64,64] = (exp [t0 i0 i1])
map t2 f32[64,64] = (exp [t1 i1 i0])
map t3 f32[64,64] = (exp [t2 i1 i0])
map t4 f32[64,64] = (exp [t3 i0 i1])
output t4
`

var limits = pass.StorageLimits{StackBytes: 1 << 10, FrameBytes: 2 << 10, AlignBytes: 64}

// TestScratchLiesWhereItsUsersFindIt: what several workers use in the workspace, what one row uses on its worker's
// stack.
func TestScratchLiesWhereItsUsersFindIt(t *testing.T) {
	f := unrolled(t, storageChain, "parallel 1 0\nparallel 3 0\ncompute-at 2 3 0\n")
	kerneltest.Golden(t, "storage/before", f)
	f = pass.Storage(f, limits)
	kerneltest.Golden(t, "storage/after", f)
	if f.WorkspaceBytes != 2*64*64*4 || f.WorkerBytes != 0 {
		t.Errorf("the workspace has %d bytes and %d for each worker, want two tensors and nothing", f.WorkspaceBytes, f.WorkerBytes)
	}
}

// TestLargeScratchIsInTheWorkersWorkspace uses one row of floats per worker.
func TestLargeScratchIsInTheWorkersWorkspace(t *testing.T) {
	f := unrolled(t, storageChain, "parallel 3 0\ncompute-at 2 3 0\n")
	f = pass.Storage(f, pass.StorageLimits{StackBytes: 64, FrameBytes: 64, AlignBytes: 64})
	if f.WorkerBytes != 64*4 {
		t.Errorf("%d bytes for each worker, want those of a row\n%s", f.WorkerBytes, f.Text())
	}
}
