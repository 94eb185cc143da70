package codegen

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/kerneltest"
	"pgregory.net/rapid"
)

// TestProcessorsWalkRight: a trace that is meant for the blocks of a GPU, which walk over tiles and cut sums, computes
// the same on a processor, or is refused.
func TestProcessorsWalkRight(t *testing.T) {
	m := modes[1]
	rapid.Check(t, func(rt *rapid.T) {
		checkCases(t, rt, m, kerneltest.Batch(rt, rapid.Custom(kerneltest.DrawTiled), batchSize))
	})
}
