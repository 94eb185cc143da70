package pass_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

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
