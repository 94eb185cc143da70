package kerneltest

import "fmt"

// TileProduct is a product of matrices by tiles of 4x8, in which each of 8 threads computes two rows of two columns.
const TileProduct = `input t0 f32[12,6]
input t1 f32[6,16]
sum t2 f32[12,16] over 6 = (mul [t0 i0 r0] [t1 r0 i1])
output t2
`

// Tiles is its GPU schedule: operand t0 goes through shared memory, results stay in registers.
var Tiles = TilesOf(3)

// TilesOf returns Tiles with the given number of terms per step.
func TilesOf(terms int) string { return fmt.Sprintf(tilesTrace, terms) }

const tilesTrace = `cache-write 0
split 0 0 4 0
split 0 3 2 0
split 0 1 8 0
split 0 7 4 0
reorder 0 2 6 4 9 5 8
fuse 0 2 6
fuse 0 4 9
bind 0 10 0
bind 0 11 1
compute-at 1 0 10
scope 1 2
split 1 2 %d 0
split 1 0 2 0
split 1 1 4 0
reorder 1 3 5 8 4 6 7
fuse 1 5 8
bind 1 9 1
cache-read 1 0 0 1
compute-at 2 1 3
scope 2 1
fuse 2 0 1
split 2 2 8 0
bind 2 4 1
`
