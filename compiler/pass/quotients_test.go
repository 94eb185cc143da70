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
