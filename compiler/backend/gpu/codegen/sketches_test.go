package codegen_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/gpusim"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// TestPatchesLieInRegisters checks that each thread of a depthwise convolution reads its patch once, and that
// neighbours read neighbouring channels.
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
	// A patch has 4 by 6 elements, and there are 9 weights.
	if n := strings.Count(made, "ld.global"); n != 24+9 {
		t.Errorf("a thread reads %d elements:\n%s", n, k.text())
	}
	k.lacks(t, made, "shared")
}

// TestRowsAreCombinedInRegisters checks that threads combine their sums by warp shuffles, and that only intermediate
// results of a row are in shared memory.
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

// TestSingleRowIsOneLaunch checks that the launch combines it in registers, for stages with one axis or none.
func TestSingleRowIsOneLaunch(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	for name, text := range map[string]string{
		"softmax": `input t0 f32[1000]
max t1 f32[] over 1000 = [t0 r0]
map t2 f32[1000] = (exp (sub [t0 i0] [t1]))
sum t3 f32[] over 1000 = [t2 r0]
map t4 f32[1000] = (div [t2 i0] [t3])
output t4
`,
		"batch of one": `input t0 f32[1,1000]
max t1 f32[1] over 1000 = [t0 i0 r0]
map t2 f32[1,1000] = (exp (sub [t0 i0 i1] [t1 i0]))
sum t3 f32[1] over 1000 = [t2 i0 r0]
map t4 f32[1,1000] = (div [t2 i0 i1] [t3 i0])
output t4
`,
		"root of mean square": `input t0 f32[1,768]
sum t1 f32[1] over 768 = (mul [t0 i0 r0] [t0 i0 r0])
map t2 f32[1] = (rsqrt [t1 i0])
map t3 f32[1,768] = (mul [t0 i0 i1] [t2 i0])
output t3
`,
	} {
		w := parsed(t, text)
		s := b.Space(w, on, schedule.Strict)
		k := printPoint(t, s, s.Default(), on)
		if len(k.kernels) != 1 || k.kernels[0].Threads < 64 {
			t.Errorf("%s, %s: %d launches, the first of %d threads:\n%s", name, k.point, len(k.kernels), k.kernels[0].Threads, k.text())
		}
		k.has(t, k.ptx(t), "shfl.sync.bfly")
	}
}

// TestSumOfAllHasManyThreads checks that a long sum also has many blocks, and that a second launch adds up their
// sums in registers.
func TestSumOfAllHasManyThreads(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	for _, c := range []struct {
		results, text    string
		launches, blocks int
	}{
		{"no axes", "input t0 f32[1000]\nsum t1 f32[] over 1000 = [t0 r0]\nmap t2 f32[] = (mul [t1] 0x1p-10:f32)\noutput t2\n", 1, 1},
		{"one", "input t0 f32[1,1000]\nmax t1 f32[1] over 1000 = [t0 i0 r0]\noutput t1\n", 1, 1},
		{"no axes, long", "input t0 f32[6400000]\nsum t1 f32[] over 6400000 = [t0 r0]\noutput t1\n", 2, 100},
		{"one, undivided", "input t0 f32[1,1000003]\nmin t1 f32[1] over 1000003 = [t0 i0 r0]\noutput t1\n", 2, 100},
		{"three", "input t0 f32[3,1000003]\nsum t1 f32[3] over 1000003 = [t0 i0 r0]\noutput t1\n", 2, 100},
		{"no axes, threes with gaps", "input t0 f32[1000003,3]@[4,1]\nsum t1 f32[] over 1000003,3 = [t0 r0 r1]\noutput t1\n", 2, 100},
		{"no axes, every other", "input t0 f32[1000003]@[2]\nsum t1 f32[] over 1000003 = [t0 r0]\noutput t1\n", 2, 100},
		{"three columns", "input t0 f32[1000003,3]\nsum t1 f32[3] over 1000003 = [t0 r0 i0]\noutput t1\n", 2, 100},
	} {
		s := b.Space(parsed(t, c.text), on, schedule.Strict)
		k := printPoint(t, s, s.Default(), on)
		if len(k.kernels) != c.launches || k.kernels[0].Blocks < int64(c.blocks) || k.kernels[0].Threads < 32 {
			t.Errorf("%s, %s: %d launches, the first of %d blocks of %d threads:\n%s", c.results, k.point, len(k.kernels), k.kernels[0].Blocks, k.kernels[0].Threads, k.text())
		}
		k.has(t, k.ptx(t), "shfl.sync.bfly")
	}
}

// TestFewTermsAreAddedInARegister checks that a single thread adds them.
func TestFewTermsAreAddedInARegister(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	s := b.Space(parsed(t, "input t0 f32[16]\nsum t1 f32[] over 16 = [t0 r0]\nmap t2 f32[] = (mul [t1] [t1])\noutput t2\n"), on, schedule.Strict)
	k := printPoint(t, s, s.Default(), on)
	made := k.ptx(t)
	if n := strings.Count(made, "st.global"); len(k.kernels) != 1 || n != 1 {
		t.Errorf("%d launches store %d times:\n%s", len(k.kernels), n, k.text())
	}
	k.lacks(t, made, "shared")
}

// TestSmallOutputsAreSplitAcrossTheCard checks that sums are divided into parts if there are fewer tiles than
// multiprocessors, and that a second launch adds them up.
func TestSmallOutputsAreSplitAcrossTheCard(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	for _, m := range []int64{1, 8, 16} {
		for _, numerics := range []schedule.Numerics{schedule.Strict, schedule.Fast} {
			s := b.Space(kerneltest.Product(t, m, 4096, 1024).Merge(), on, numerics)
			k := printPoint(t, s, s.Default(), on)
			if len(k.kernels) != 2 || k.kernels[0].Blocks < int64(on.GPU.Multiprocessors)/2 {
				t.Errorf("%d rows: %d launches, the first of %d blocks, by %s", m, len(k.kernels), k.kernels[0].Blocks, k.point)
			}
		}
	}
}

// attention has eight heads with scaled and masked scores.
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

// TestAttentionIsOneLaunch covers any number of keys. The launch uses matrix instructions and keeps scores in
// registers and shared memory, even if keys are not whole pieces.
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
