package kerneltest

import (
	"strconv"
	"strings"
)

// WarpgroupProduct is a product of the size that one warpgroup multiplies, in four steps.
const WarpgroupProduct = `input t0 f16[64,64]
input t1 f16[64,16]
sum t2 f32[64,16] over 64 = (mul (cast f32 [t0 i0 r0]) (cast f32 [t1 r0 i1]))
output t2
`

// WarpgroupTile is its schedule: 16 terms per step, with operands fetched for three steps.
const WarpgroupTile = warpgroupNests + `cache-read 1 0 0 1
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

// WarpgroupBoxes is the same with operands copied as boxes.
const WarpgroupBoxes = warpgroupNests + warpgroupBoxOf0 + warpgroupBoxOf1

// WarpgroupAfterMap is a product for two warpgroups, of a tensor computed before it, which lies in the workspace.
const WarpgroupAfterMap = `input t0 f16[128,64]
input t1 f16[64,16]
map t2 f16[128,64] = (mul [t0 i0 i1] [t0 i0 i1])
sum t3 f32[128,16] over 64 = (mul (cast f32 [t2 i0 r0]) (cast f32 [t1 r0 i1]))
output t3
`

// WarpgroupBoxesAfterMap returns WarpgroupBoxes for two blocks, after another stage.
func WarpgroupBoxesAfterMap() string {
	text := ""
	for line := range strings.Lines(WarpgroupBoxes) {
		words := strings.Fields(line)
		stages := 1
		if words[0] == "compute-at" {
			stages = 2
		}
		for k := 1; k <= stages; k++ {
			n, err := strconv.Atoi(words[k])
			if err != nil {
				panic(err) // a constant
			}
			words[k] = strconv.Itoa(n + 1)
		}
		text += strings.Join(words, " ") + "\n"
	}
	return text
}

// WarpgroupBoxAndCopy is the same with boxes for the first operand only.
const WarpgroupBoxAndCopy = warpgroupNests + warpgroupBoxOf0 + `cache-read 1 1 0 1
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

const warpgroupBoxOf0 = `cache-read 1 0 0 1
compute-at 2 1 17
scope 2 1
swizzle 2
pipeline 2 3
bulk 2
`

const warpgroupBoxOf1 = `cache-read 1 1 0 1
compute-at 3 1 17
scope 3 1
swizzle 3
pipeline 3 3
bulk 3
`

const warpgroupNests = `cache-write 0
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
`

// WarpgroupProducts consists of two such products.
const WarpgroupProducts = `input t0 f16[2,64,64]
input t1 f16[2,64,16]
sum t2 f32[2,64,16] over 64 = (mul (cast f32 [t0 i0 i1 r0]) (cast f32 [t1 i0 r0 i2]))
output t2
`

// WarpgroupLoop is the schedule in which a block computes them one after the other, with operands copied as boxes.
const WarpgroupLoop = `cache-write 0
split 0 1 64 0
split 0 4 64 0
split 0 6 64 0
split 0 8 16 0
split 0 10 8 0
split 0 2 16 0
split 0 14 16 0
split 0 16 8 0
split 0 18 2 0
reorder 0 3 13 5 15 9 12 19 7 11 17 20
fuse 0 3 13
fuse 0 5 15
fuse 0 22 9
fuse 0 23 12
fuse 0 24 19
bind 0 21 0
bind 0 25 1
reorder 0 21 0
compute-at 1 0 0
scope 1 2
split 1 1 64 0
split 1 5 64 0
split 1 7 16 0
split 1 9 8 0
split 1 2 16 0
split 1 13 8 0
split 1 15 2 0
split 1 3 16 0
reorder 1 18 4 12 8 11 16 19 6 10 14 17
fuse 1 4 12
fuse 1 20 8
fuse 1 21 11
fuse 1 22 16
tensorize 1 19 7
bind 1 23 1
cache-read 1 0 0 1 2
compute-at 2 1 18
scope 2 1
swizzle 2
pipeline 2 3
bulk 2
cache-read 1 1 0 1 2
compute-at 3 1 18
scope 3 1
swizzle 3
pipeline 3 3
bulk 3
`
