package codegen

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"pgregory.net/rapid"
)

// TestElementsBeyondTheExtentsAreNotRead compares kernels with the evaluator for the elements of an execution, with
// NaN beyond them.
func TestElementsBeyondTheExtentsAreNotRead(t *testing.T) {
	checkDrawn(t, modes[:1], batchSize, func(t *rapid.T, d *target.Target) kerneltest.Case {
		draw := rapid.SampledFrom([]func(*rapid.T) *expr.Workload{kerneltest.DrawWorkload, kerneltest.DrawAttention, kerneltest.DrawRows, kerneltest.DrawSums, kerneltest.DrawProduct, kerneltest.DrawConv}).Draw(t, "kind")
		return casePoint(t, d, kerneltest.Opened(t, draw(t)).Merge())
	})
}

// TestSchedulesKeepLimits does the same for arbitrary schedules.
func TestSchedulesKeepLimits(t *testing.T) {
	for _, m := range modes[:1] {
		t.Run(m.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				checkCases(t, rt, m, kerneltest.Batch(rt, rapid.Custom(func(t *rapid.T) kerneltest.Case {
					return drawCaseOf(t, kerneltest.Opened(t, kerneltest.DrawWorkload(t)))
				}), batchSize))
			})
		})
	}
}
