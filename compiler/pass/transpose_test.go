package pass_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/pass"
)

// TestPartialSquaresAreNotTransposed: seven columns of eight lanes.
func TestPartialSquaresAreNotTransposed(t *testing.T) {
	f := unrolled(t, "input t0 f32[16,7]\nmap t1 f32[7,16] = [t0 i1 i0]\noutput t1\n",
		"split 0 1 8 0\nreorder 0 2 0 3\nunroll 0 0\nvectorize 0 3\n")
	if after := pass.Transpose(f); after.Text() != f.Text() {
		t.Errorf("seven columns are transposed:\n%s", after.Text())
	}
}
