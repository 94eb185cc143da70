package pass_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/pass"
)

func TestLanesOfTypesThatNothingComputesWithAreNotCombined(t *testing.T) {
	f := unrolled(t, "input t0 f32[2,16]\nsum t1 f32[2] over 16 = [t0 i0 r0]\noutput t1\n", "vectorize 0 1\n")
	if after := pass.Across(f, func(array.DType) bool { return false }); after.Text() != f.Text() {
		t.Errorf("the program is\n%s", after.Text())
	}
}
