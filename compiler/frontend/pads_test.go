package frontend

import "testing"

// TestAConvolutionMayReadAnythingButAPad: the third operand of what it reads was taken for a Pad's value.
func TestAConvolutionMayReadAnythingButAPad(t *testing.T) {
	m := newSketch().input("x", 1, 2, 4, 4).constant("w", 1, 6, 1, 1).
		node("a = Relu x").node("b = Neg x").node("c = Concat x a b", intAttr("axis", 1)).node("y = Conv c w").output("y")
	run(t, mustImport(t, m))
}
