package codegen

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// TestPersistentBlocksOnProcessors checks that a trace for a GPU's persistent blocks, with Stream-K sums, computes the
// same on a processor or is refused.
func TestPersistentBlocksOnProcessors(t *testing.T) {
	m := modes[1]
	rapid.Check(t, func(rt *rapid.T) {
		checkCases(t, rt, m, kerneltest.Batch(rt, rapid.Custom(kerneltest.DrawTiled), batchSize))
	})
}
