package pass_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

type prefetchAll struct{}

func (prefetchAll) Has(expr.Expr, *expr.Var) bool { return true }

// packed returns a product by a constant in strips of 16 columns, in tiles of 4 rows. A strip of 64 rows is 4 KiB.
func packed(t *testing.T) *ir.Func {
	t.Helper()
	f := unrolled(t, `input t0 f32[32,64]
constant t1 f32[64,48]
sum t2 f32[32,48] over 64 = (mul [t0 i0 r0] [t1 r0 i1])
map t3 f32[32,48] = (max [t2 i0 i1] 0x0p+00:f32)
output t3
`, `split 1 0 4 0
split 1 1 16 0
reorder 1 4 2 3 5
unroll 1 3
vectorize 1 5
parallel 1 4
compute-at 0 1 2
reorder 0 2 0 1
unroll 0 0
vectorize 0 1
pack 0 1 16 0 0 0 0 1 16 1
prefetch 0 1024
`)
	return pass.CSE(pass.Lanewise(pass.Promote(f), prefetchAll{}))
}

// TestPackedConstantsAreFetchedAhead: each vector that is read fetches one that is read 1024 bytes later, and each
// step of each of the 8 tiles its share of the next strip.
func TestPackedConstantsAreFetchedAhead(t *testing.T) {
	f := packed(t)
	kerneltest.Golden(t, "prefetch/strips", f)
	kerneltest.Golden(t, "prefetch/ahead", pass.Prefetch(f, 64))
}
