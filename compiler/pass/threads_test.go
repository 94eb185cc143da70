package pass_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

func run(t *testing.T, f *ir.Func) *ir.Func {
	t.Helper()
	f, err := pass.Threads(f)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const threadsChain = `input t0 f32[3,64]
sum t1 f32[3] over 64 = [t0 i0 r0]
map t2 f32[3,64] = (sub [t0 i0 i1] [t1 i0])
output t2
`

// TestUnboundStagesRunOnTheFirstThread: the sums are a launch of one thread, the differences one of three blocks.
func TestUnboundStagesRunOnTheFirstThread(t *testing.T) {
	f := kerneltest.Replayed(t, threadsChain, "bind 1 0 0\nbind 1 1 1\n")
	kerneltest.Golden(t, "threads/before", f)
	kerneltest.Golden(t, "threads/after", run(t, f))
}

// TestFirstThreadComputesWhatABlockShares, where the stage computed in the block has no threads of its own.
func TestFirstThreadComputesWhatABlockShares(t *testing.T) {
	kerneltest.Golden(t, "threads/shared", run(t, kerneltest.Replayed(t, threadsChain, "compute-at 0 1 0\nscope 0 1\nbind 1 0 0\nbind 1 1 1\n")))
}

// TestLaunchesAreNotInsideOfLoops checks the error.
func TestLaunchesAreNotInsideOfLoops(t *testing.T) {
	if _, err := pass.Threads(kerneltest.Replayed(t, threadsChain, "bind 1 1 0\n")); err == nil || !strings.Contains(err.Error(), "a loop on blocks is inside another loop") {
		t.Errorf("a launch for each row: %v", err)
	}
}

// TestThreadsHaveNoThreads: rows on threads, and columns of each row on threads, too.
func TestThreadsHaveNoThreads(t *testing.T) {
	f := kerneltest.Replayed(t, threadsChain, "compute-at 0 1 0\nbind 0 0 1\nbind 1 1 1\n")
	outer := &ir.For{Var: &expr.Var{Name: "rows", Extent: 2}, Extent: 2, Kind: ir.Threads, Body: f.Body}
	if _, err := pass.Threads(f.With(ir.Block{outer})); err == nil || !strings.Contains(err.Error(), "fuse them") {
		t.Errorf("threads of threads: %v", err)
	}
}
