package kerneltest

// NarrowProduct is a product of 16-bit factors, with contiguous terms in the first and contiguous columns in the
// second.
const NarrowProduct = `input t0 bf16[32,16]
input t1 bf16[16,16]
sum t2 f32[32,16] over 16 = (mul (cast f32 [t0 i0 r0]) (cast f32 [t1 r0 i1]))
output t2
`

// WarpTile has two by two matrices of results in the registers of 32 threads: threads 4k to 4k + 3 have rows k and
// k + 8 of each, two neighbouring columns each.
const WarpTile = warpNests + `tensorize 1 2 0
bind 1 11 1
`

// WarpMatrices is WarpTile with 16-bit factors in shared memory, in rows with gaps of 16 bytes.
const WarpMatrices = warpNests + `tensorize 1 2 2
bind 1 11 1
cache-read 1 0 0 1
compute-at 2 0 2
scope 2 1
skew 2 8
bind 2 0 1
cache-read 1 1 0 1
compute-at 3 0 2
scope 3 1
skew 3 8
bind 3 0 1
`

const warpNests = `cache-write 0
split 0 0 32 0
split 0 3 16 0
split 0 5 8 0
split 0 1 8 0
split 0 9 2 0
reorder 0 2 7 10 4 6 8 11
fuse 0 7 10
bind 0 2 0
bind 0 12 1
compute-at 1 0 2
scope 1 2
split 1 0 16 0
split 1 4 8 0
split 1 1 8 0
split 1 8 2 0
reorder 1 6 9 2 3 5 7 10
fuse 1 6 9
`
