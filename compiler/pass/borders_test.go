package pass_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// TestBordersTestAPositionOnce sums 2 channels of n of 8 padded positions, in unrolled tiles of 4. The order of the
// channels of a position stays.
func TestBordersTestAPositionOnce(t *testing.T) {
	for _, c := range []struct{ weights, trace, want string }{
		{"constant", "split 0 0 4 0\nreorder 0 2 1 3\nunroll 0 1\nunroll 0 3\n", "  unrolled x0_3'1 < 4\n    if x0_2 * 4 + x0_3'1 + 1 < n0\n      unrolled x0_1 < 2\n"},
		{"constant", "split 0 0 4 0\nunroll 0 1\n", "    if x0_2 * 4 + x0_3 + 1 < n0\n      unrolled x0_1 < 2\n"},
		{"input", "split 0 0 4 0\nunroll 0 1\n", "select("}, // they may be infinite
	} {
		f := kerneltest.Replayed(t, "input t0 f32[8,2]\ninput t1 i64[]<=8\n"+c.weights+" t2 f32[2]\n"+
			"sum t3 f32[8] over 2 while i0 [t1] = (mul (select (lt (add i0 1) [t1]) [t0 (add i0 1) r0] 0x0p+00:f32) [t2 r0])\noutput t3\n", c.trace)
		if text := pass.Borders(f).Text(); !strings.Contains(text, c.want) {
			t.Errorf("%q:\n%s", c.trace, text)
		}
	}
}
