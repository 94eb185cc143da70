package pass_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// TestQuotientsByExtentsLeaveInnerLoops copies n rows of m of 16 positions with 8 channels each, in blocks of 4
// positions. The row and the column of a position are computed once for all channels.
func TestQuotientsByExtentsLeaveInnerLoops(t *testing.T) {
	f := lowered(t, "input t0 f32[4,16,8]\ninput t1 i64[]<=4\ninput t2 i64[]<=16\n"+
		"map t3 f32[4,16,8] while i0 [t1], i1 [t2] = (exp [t0 i0 i1 i2])\noutput t3\n", "fuse-held 0 0 1\nsplit 0 3 4 0\n")
	want := "    let q = floordiv(x0_4 * 4 + x0_5, max(n1, 1))\n    let q'1 = floormod(x0_4 * 4 + x0_5, max(n1, 1))\n" +
		"    for x0_2 < 8\n      a3[q * 128 + q'1 * 8 + x0_2] = exp(a0[q * 128 + q'1 * 8 + x0_2])\n"
	if text := pass.Quotients(f).Text(); !strings.Contains(text, want) {
		t.Errorf("the program is\n%s", text)
	}
}

// TestQuotientsOfLanesHaveNoNames copies n rows of m of 8 positions to adjacent ones, a vector at a time.
func TestQuotientsOfLanesHaveNoNames(t *testing.T) {
	f := lowered(t, "input t0 f32[4,8]\ninput t1 i64[]<=4\ninput t2 i64[]<=8\n"+
		"map t3 f32[32] while i0 (mul [t1] [t2]) = [t0 (floordiv i0 [t2]) (floormod i0 [t2])]\noutput t3\n", "split 0 0 8 0\nvectorize 0 2\n")
	if text := pass.Quotients(f).Text(); !strings.Contains(text, "vector x0_2 < 8\n    a3[x0_1 * 8 + x0_2] = a0[floordiv(x0_1 * 8 + x0_2, n1)") {
		t.Errorf("the program is\n%s", text)
	}
}

func lowered(t *testing.T, workload, trace string) *ir.Func {
	t.Helper()
	w, err := expr.Parse("tilth-workload 1\n" + workload)
	if err != nil {
		t.Fatal(err)
	}
	s, err := schedule.Replay(w, []byte("tilth-trace 1\n"+trace))
	if err != nil {
		t.Fatal(err)
	}
	f, err := lower.Schedule(s)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
