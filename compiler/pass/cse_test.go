package pass_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// cseAll has a vector form of everything.
type cseAll struct{}

func (cseAll) Has(expr.Expr, *expr.Var) bool { return true }

func cseProgram(t *testing.T, workload, trace string) *ir.Func {
	t.Helper()
	return pass.Lanewise(pass.Promote(unrolled(t, workload, trace)), cseAll{})
}

// TestValueIsLoadedAgainWhereItMayHaveChanged: sums in memory are loaded for each step.
func TestValueIsLoadedAgainWhereItMayHaveChanged(t *testing.T) {
	f := cseProgram(t, "input t0 f32[2,8]\nsum t1 f32[2] over 8 = [t0 i0 r0]\noutput t1\n", "split 0 1 2 0\nreorder 0 0 2 3\nunroll 0 3\n")
	kerneltest.Golden(t, "cse/sums", pass.CSE(f))
}

// TestCSEKeepsLoadsBehindTheirGuard checks that the selected value is kept as a whole.
func TestCSEKeepsLoadsBehindTheirGuard(t *testing.T) {
	f := cseProgram(t, `input t0 f32[8]
map t1 f32[10] = (mul (select (and (le 1 i0) (lt i0 9)) [t0 (add i0 -1)] 0x0p+00:f32) (select (and (le 1 i0) (lt i0 9)) [t0 (add i0 -1)] 0x0p+00:f32))
output t1
`, "")
	kerneltest.Golden(t, "cse/guarded", pass.CSE(f))
}

// TestCSELoadsSourcesOfLanesOnce: both channels of each group are in the same vector, and what is picked of it serves
// all rows of a window.
func TestCSELoadsSourcesOfLanesOnce(t *testing.T) {
	f := cseProgram(t, `input t0 f32[5,8]
sum t1 f32[4,8] over 2,2 = [t0 (add i0 r0) (add (mul (floordiv i1 2) 2) r1)]
map t2 f32[4,8] = (max [t1 i0 i1] 0x0p+00:f32)
output t2
`, `split 1 0 2 0
reorder 1 2 3 1
unroll 1 3
vectorize 1 1
compute-at 0 1 2
reorder 0 3 2 0 1
unroll 0 3
unroll 0 2
unroll 0 0
vectorize 0 1
`)
	kerneltest.Golden(t, "cse/picked", pass.CSE(f))
}
