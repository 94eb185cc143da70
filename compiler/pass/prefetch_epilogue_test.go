package pass_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// residual is a product to which a tensor is added, in tiles of two rows of two vectors.
const (
	residual = `input t0 f32[64,8]
input t1 f32[64,16]
constant t2 f32[8,16]
sum t3 f32[64,16] over 8 = (mul [t0 i0 r0] [t2 r0 i1])
map t4 f32[64,16] = (add [t3 i0 i1] [t1 i0 i1])
output t4
`
	tiles = `split 1 0 2 0
reorder 1 2 3 1
unroll 1 3
vectorize 1 1
compute-at 0 1 2
reorder 0 2 0 1
unroll 0 0
vectorize 0 1
`
)

func TestEpiloguesFetchEachLineBeforeTheirTile(t *testing.T) {
	f := pass.Promote(unrolled(t, residual, tiles))
	kerneltest.Golden(t, "prefetch/before", f)
	kerneltest.Golden(t, "prefetch/after", pass.PrefetchEpilogues(f, pass.Caches{LineBytes: 64, L2Bytes: 4 << 10}))
}

func TestEpiloguesFetchNothingThatACacheHolds(t *testing.T) {
	f := pass.Promote(unrolled(t, residual, tiles))
	if after := pass.PrefetchEpilogues(f, pass.Caches{LineBytes: 64, L2Bytes: 1 << 20}); after.Text() != f.Text() {
		t.Errorf("two tensors of 4 KiB are fetched:\n%s", after.Text())
	}
}
