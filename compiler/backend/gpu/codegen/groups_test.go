package codegen_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/gpusim"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// grouped is a convolution of 32 groups with 8 channels each.
const grouped = `input t0 f32[1,28,28,256]
constant t1 f32[3,3,8,256]
map t2 f32[1,30,30,256] = (select (and (and (le 1 i1) (lt i1 29)) (and (le 1 i2) (lt i2 29))) [t0 i0 (sub i1 1) (sub i2 1) i3] 0x0p+00:f32)
sum t3 f32[1,28,28,256] over 3,3,8 = (mul [t2 i0 (add i1 r0) (add i2 r1) (add (mul (floordiv i3 8) 8) r2)] [t1 r0 r1 r2 i3])
output t3
`

// TestGroupsShareABlock checks that a block's tile has channels of four groups with operands in shared memory, and
// that each warp, or thread, has those of one group. Matrix instructions multiply groups of eight channels.
func TestGroupsShareABlock(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	for algorithm, c := range map[string]struct {
		knobs         map[string]int64
		blocks        int64
		want, without string
	}{
		// Tiles have 28 positions and 32 channels, 4 by 2 per thread.
		"direct": {map[string]int64{"tall": 7, "rows": 4, "wide": 16, "columns": 2, "depth": 8, "stages": 1, "parts": 1}, 28 * 8, "fma.rn.f32", "mma.sync"},
		// 784 positions, 64 at a time.
		"TF32": {map[string]int64{"tall": 2, "rows": 2, "wide": 4, "columns": 1, "joint": 1, "stages": 1}, 13 * 8, "mma.sync.aligned.m16n8k8.row.col.f32.tf32", "fma.rn.f32"},
	} {
		s := by(t, b.Space(parsed(t, grouped), on, schedule.Fast), algorithm)
		k := printPoint(t, s, pointWith(t, s, c.knobs), on)
		made := k.ptx(t)
		k.has(t, made, c.want, "cp.async", "cp.async.wait_group 0")
		k.lacks(t, made, c.without)
		if blocks := k.kernels[0].Blocks; blocks != c.blocks {
			t.Errorf("%d blocks, by %s:\n%s", blocks, k.point, k.text())
		}
	}
}
