package pass_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

func TestSumAlongAVectorCombinesItsLanes(t *testing.T) {
	f := unrolled(t, "input t0 f32[2,16]\nsum t1 f32[2] over 16 = [t0 i0 r0]\noutput t1\n", "vectorize 0 1\n")
	kerneltest.Golden(t, "across/before", f)
	kerneltest.Golden(t, "across/after", pass.Across(f, func(array.DType) bool { return true }))
	if none := pass.Across(f, func(array.DType) bool { return false }); none.Text() != f.Text() {
		t.Errorf("lanes of a type that nothing computes with are combined:\n%s", none.Text())
	}
}
