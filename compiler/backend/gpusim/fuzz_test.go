package gpusim

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"pgregory.net/rapid"
)

// FuzzReplay feeds arbitrary workloads and traces to the compiler for GPUs. Each is refused or compiled to text in
// bounded time.
func FuzzReplay(f *testing.F) {
	on := played(f)
	seeds := 40
	if testing.Short() {
		seeds = 8
	}
	kerneltest.AddCases(f, seeds, func(t *rapid.T) kerneltest.Case {
		if rapid.Bool().Draw(t, "changed") {
			return kerneltest.DrawTiled(t)
		}
		return persistentPoint(t, drawWalk(t).Merge(), on)
	})
	kerneltest.FuzzReplay(f, func(_ *expr.Workload, s *schedule.Schedule) { _, _ = newUnit(on).AddWithPacks("k", "k", s) })
}
