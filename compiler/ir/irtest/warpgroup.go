package irtest

// WarpgroupProduct is a product of matrices as large as one warpgroup multiplies, in four steps.
const WarpgroupProduct = `input t0 f16[64,64]
input t1 f16[64,16]
sum t2 f32[64,16] over 64 = (mul (cast f32 [t0 i0 r0]) (cast f32 [t1 r0 i1]))
output t2
`

// WarpgroupTile is how one computes it: 16 terms at a time, of operands that are fetched for three steps.
const WarpgroupTile = `cache-write 0
split 0 0 64 0
split 0 3 64 0
split 0 5 64 0
split 0 7 16 0
split 0 9 8 0
split 0 1 16 0
split 0 13 16 0
split 0 15 8 0
split 0 17 2 0
reorder 0 2 12 4 14 8 11 18 6 10 16 19
fuse 0 2 12
fuse 0 4 14
fuse 0 21 8
fuse 0 22 11
fuse 0 23 18
bind 0 20 0
bind 0 24 1
compute-at 1 0 20
scope 1 2
split 1 0 64 0
split 1 4 64 0
split 1 6 16 0
split 1 8 8 0
split 1 1 16 0
split 1 12 8 0
split 1 14 2 0
split 1 2 16 0
reorder 1 17 3 11 7 10 15 18 5 9 13 16
fuse 1 3 11
fuse 1 19 7
fuse 1 20 10
fuse 1 21 15
tensorize 1 18 7
bind 1 22 1
cache-read 1 0 0 1
compute-at 2 1 17
scope 2 1
swizzle 2
fuse 2 0 1
split 2 2 1024 0
split 2 4 8 0
vectorize 2 6
bind 2 5 1
pipeline 2 3
cache-read 1 1 0 1
compute-at 3 1 17
scope 3 1
swizzle 3
fuse 3 0 1
split 3 2 1024 0
split 3 4 8 0
vectorize 3 6
bind 3 5 1
pipeline 3 3
`
