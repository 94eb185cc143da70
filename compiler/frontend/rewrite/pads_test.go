package rewrite_test

import (
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// TestConvolutionMayReadAnythingButAPad: the third operand of a producer was once taken for a Pad's value.
func TestConvolutionMayReadAnythingButAPad(t *testing.T) {
	m := modeltest.New().Input("x", 1, 2, 4, 4).Constant("w", 1, 6, 1, 1).
		Node("a = Relu x").Node("b = Neg x").Node("c = Concat x a b", modeltest.Int("axis", 1)).Node("y = Conv c w").Output("y")
	modeltest.Run(t, modeltest.Import(t, m))
}
