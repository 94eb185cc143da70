package pass_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine/x86"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// ragged is a product of 7 by 20 sums of bytes whose rows are copied.
const (
	ragged = `input t0 u8[7,64]
constant t1 i8[64,20]
sum t2 i32[7,20] over 64 = (mul (cast i32 [t0 i0 r0]) (cast i32 [t1 r0 i1]))
output t2
`
	tilesCopied = `cache-write 0
reorder 1 2 0 1
tensorize 1 2 11
cache-read 1 0 0 1
pack 0 1 32 0 0 4 0 1 32 1 0 4 1
`
)

func every(array.DType) bool { return true }

// TestTilesHaveRoomBeyondSums: what a tile reads behind a copy is memory of the kernel's, and what it stores has whole
// rows.
func TestTilesHaveRoomBeyondSums(t *testing.T) {
	kerneltest.Golden(t, "tiles/ragged", pass.Tiles(unrolled(t, ragged, tilesCopied), every))
}

// TestTilesReadNoOthersMemory: rows of an argument are too few for a tile, so that none is loaded.
func TestTilesReadNoOthersMemory(t *testing.T) {
	f := unrolled(t, ragged, "cache-write 0\nreorder 1 2 0 1\ntensorize 1 2 11\npack 0 1 32 0 0 4 0 1 32 1 0 4 1\n")
	ir.Visit(pass.Tiles(f, every).Body, func(st ir.Stmt) {
		if c, ok := st.(*ir.Call); ok && c.Name == x86.TileLoad(array.Int8).Name {
			t.Errorf("rows of %s are loaded", c.Args[1].Tensor.Name)
		}
	})
}
