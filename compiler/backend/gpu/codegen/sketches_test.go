package codegen_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/gpusim"
	"github.com/tilth-dev/tilth/compiler/expr/exprtest"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// TestPatchesLieInRegisters: of a depthwise convolution each thread reads what its results need once, and neighbours
// read neighbouring channels.
func TestPatchesLieInRegisters(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	w := parsed(t, `input t0 f32[58,58,144]
constant t1 f32[3,3,144]
sum t2 f32[56,56,144] over 3,3 = (mul [t0 (add i0 r0) (add i1 r1) i2] [t1 r0 r1 i2])
output t2
`)
	s := restricted(t, b.Space(w, on, schedule.Strict), map[string]int64{"tall": 2, "wide": 4})
	k := printPoint(t, s, s.Default(), on)
	made := k.ptx(t)
	// A patch of 4 by 6 elements, and 9 weights.
	if n := strings.Count(made, "ld.global"); n != 24+9 {
		t.Errorf("a thread reads %d elements:\n%s", n, k.text())
	}
	k.lacks(t, made, "shared")
}

// TestRowsAreCombinedInRegisters: threads exchange their sums, and what a row's stages leave to the next ones is all
// that lies in shared memory.
func TestRowsAreCombinedInRegisters(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	w := parsed(t, `input t0 f32[512,256]
max t1 f32[512] over 256 = [t0 i0 r0]
map t2 f32[512,256] = (exp (sub [t0 i0 i1] [t1 i0]))
sum t3 f32[512] over 256 = [t2 i0 r0]
map t4 f32[512,256] = (div [t2 i0 i1] [t3 i0])
output t4
`)
	s := b.Space(w, on, schedule.Strict)
	k := printPoint(t, s, s.Default(), on)
	if n := strings.Count(k.ptx(t), "shfl.sync.bfly"); n < 6 {
		t.Errorf("%s exchanges registers %d times:\n%s", k.point, n, k.text())
	}
}

// TestFewResultsFillTheCard: where there are less tiles of results than multiprocessors, sums are divided into parts,
// which a second launch adds up.
func TestFewResultsFillTheCard(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	for _, m := range []int64{1, 8, 16} {
		for _, numerics := range []schedule.Numerics{schedule.Strict, schedule.Fast} {
			s := b.Space(exprtest.Product(t, m, 4096, 1024).Merge(), on, numerics)
			k := printPoint(t, s, s.Default(), on)
			if len(k.kernels) != 2 || k.kernels[0].Blocks < int64(on.GPU.Multiprocessors)/2 {
				t.Errorf("%d rows: %d launches, the first of %d blocks, by %s", m, len(k.kernels), k.kernels[0].Blocks, k.point)
			}
		}
	}
}

// attention is of eight heads, whose scores are scaled and masked.
const attention = `input t0 f32[8,256,64]
input t1 f32[8,%[1]d,64]
input t2 bool[256,%[1]d]
input t3 f32[8,%[1]d,64]
map t4 f32[8,64,%[1]d] = [t1 i0 i2 i1]
sum t5 f32[8,256,%[1]d] over 64 = (mul [t0 i0 i1 r0] [t4 i0 r0 i2])
map t6 f32[8,256,%[1]d] = (select [t2 i1 i2] (mul [t5 i0 i1 i2] 0x1p-03:f32) -0x1.fffffep+127:f32)
max t7 f32[8,256] over %[1]d = [t6 i0 i1 r0]
map t8 f32[8,256,%[1]d] = (exp (sub [t6 i0 i1 i2] [t7 i0 i1]))
map t9 f32[8,%[1]d,64] = [t3 i0 i1 i2]
sum t10 f32[8,256,64] over %[1]d = (mul [t8 i0 i1 r0] [t9 i0 r0 i2])
sum t11 f32[8,256] over %[1]d = [t8 i0 i1 r0]
map t12 f32[8,256] = (div 0x1p+00:f32 [t11 i0 i1])
map t13 f32[8,256,64] = (mul [t10 i0 i1 i2] [t12 i0 i1])
output t13
`

// TestAttentionIsOneLaunch, however many keys there are, which multiplies matrices by instructions and keeps scores in
// registers and shared memory. Keys that are no whole pieces leave it at that.
func TestAttentionIsOneLaunch(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	for _, keys := range []int{128, 197, 4096} {
		s := b.Space(parsed(t, fmt.Sprintf(attention, keys)), on, schedule.Default)
		k := printPoint(t, s, s.Default(), on)
		if len(k.kernels) != 1 {
			t.Errorf("%d launches for %d keys, by %s", len(k.kernels), keys, k.point)
		}
		k.has(t, k.ptx(t), "mma.sync", "shfl.sync.bfly")
	}
}
