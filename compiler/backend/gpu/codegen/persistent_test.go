package codegen_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/gpusim"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// TestPersistentBlocksKeepResultsInRegisters checks that persistent blocks prefetch and multiply like blocks with a
// tile each, with whole sums or Stream-K shares. They use no atomic additions.
func TestPersistentBlocksKeepResultsInRegisters(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	for algorithm, c := range map[string]struct {
		stages int64
		want   []string
	}{
		"direct":        {3, []string{"fma.rn.f32", "ld.shared"}},
		"F16":           {3, []string{"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "cp.async.wait_group 1"}},
		"warpgroup F16": {4, []string{"wgmma.mma_async", "cp.async.bulk.tensor.2d", "mbarrier.try_wait.parity"}},
	} {
		s := by(t, b.Space(kerneltest.ProductOf(t, array.Float16, 2048, 512, 3072), on, schedule.Strict), algorithm)
		for cut := range int64(2) {
			k := printPoint(t, s, pointWith(t, s, map[string]int64{"parts": 1, "stages": c.stages, "walkers": 1, "band": 4, "cut": cut}), on)
			if len(k.kernels) != int(1+cut) || k.kernels[0].Blocks != int64(on.GPU.Multiprocessors) {
				t.Fatalf("%s has %d launches, the first of %d blocks", k.point, len(k.kernels), k.kernels[0].Blocks)
			}
			made := k.ptx(t)
			k.has(t, made, c.want...)
			k.lacks(t, made, "atom.")
		}
	}
}
