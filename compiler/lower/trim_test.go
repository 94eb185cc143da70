package lower_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// TestLoopsOverWindowsLeaveOutPadding: rows 1 to 4 of 7 are inside. Tiles of several rows leave out what none of them
// reads, and windows that step over rows what they do not hit.
func TestLoopsOverWindowsLeaveOutPadding(t *testing.T) {
	const padded = "input t0 f32[4,8]\nconstant t1 f32[3,8]\n" +
		"map t2 f32[7,8] = (select (and (le 1 i0) (lt i0 5)) [t0 (add i0 -1) i1] 0x0p+00:f32)\n"
	for _, c := range []struct{ name, sum, trace, want string }{
		{"one row", "sum t3 f32[5,8] over 3 = (mul [t2 (add i0 r0) i1] [t1 r0 i1])\noutput t3\n", "reorder 1 0 2 1\ntrim 1 2\n",
			"for x1_2 < 3 from max(0, x1_0 * -1 + 1) before min(3, x1_0 * -1 + 5)\n"},
		{"two rows", "sum t3 f32[4,8] over 3 = (mul [t2 (add i0 r0) i1] [t1 r0 i1])\noutput t3\n", "split 1 0 2 0\nreorder 1 3 2 4 1\ntrim 1 2\n",
			"for x1_2 < 3\n"},
		{"every second", "sum t3 f32[3,8] over 2 = (mul [t2 (add (mul i0 2) (mul r0 2)) i1] [t1 r0 i1])\noutput t3\n", "reorder 1 0 2 1\ntrim 1 2\n",
			"for x1_2 < 2 from max(0, x1_0 * -1 + 1) before min(2, x1_0 * -1 + 3)\n"},
	} {
		w, err := expr.Parse("tilth-workload 1\n" + padded + c.sum)
		if err != nil {
			t.Fatal(err)
		}
		s, err := schedule.Replay(w, []byte("tilth-trace 1\n"+c.trace))
		if err != nil {
			t.Fatal(err)
		}
		f, err := lower.Schedule(s)
		if err != nil {
			t.Fatal(err)
		}
		if text := f.Text(); !strings.Contains(text, c.want) {
			t.Errorf("%s:\n%s", c.name, text)
		}
	}
}
