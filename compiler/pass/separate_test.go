package pass_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// steps returns a product of tiles of two rows of two vectors, with two steps of its sums written out.
func steps(t *testing.T) *ir.Func {
	t.Helper()
	return pass.Promote(unrolled(t, `input t0 f32[4,8]
input t1 f32[8,16]
sum t2 f32[4,16] over 8 = (mul [t0 i0 r0] [t1 r0 i1])
map t3 f32[4,16] = (max [t2 i0 i1] 0x0p+00:f32)
output t3
`, `split 1 0 2 0
reorder 1 2 3 1
unroll 1 3
vectorize 1 1
compute-at 0 1 2
split 0 2 2 0
reorder 0 3 4 0 1
unroll 0 4
unroll 0 0
vectorize 0 1
`))
}

// TestStepsOfATileOfHalfTheRegistersAreKeptApart, where eight registers are there for four accumulators.
func TestStepsOfATileOfHalfTheRegistersAreKeptApart(t *testing.T) {
	f := steps(t)
	kerneltest.Golden(t, "separate/before", f)
	kerneltest.Golden(t, "separate/after", pass.Separate(f, 8))
}

func TestSeparateSkipsStepsWithSpareRegisters(t *testing.T) {
	if f := pass.Separate(steps(t), 16); strings.Contains(f.Text(), "fence") {
		t.Errorf("four accumulators of sixteen registers are kept apart:\n%s", f.Text())
	}
}
