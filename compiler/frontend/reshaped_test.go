package frontend

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
)

// TestDenseLayersOfSequencesTakeInWhatFollows: a Gemm between two reshapes is a product on the sequence's axes.
func TestDenseLayersOfSequencesTakeInWhatFollows(t *testing.T) {
	flat, deep := array.FromInt64([]int64{-1, 4}, 2), array.FromInt64([]int64{2, 3, 6}, 3)
	start := func() sketch {
		return newSketch().input("x", 2, 3, 4).known("flat", flat).known("deep", deep).constant("b", 6).node("r = Reshape x flat")
	}
	end := func(s sketch) sketch {
		return s.node("d = Reshape g deep").node("t = Tanh d").node("y = Mul t d")
	}
	for _, s := range map[string]sketch{
		"plain":      end(start().constant("w", 4, 6).node("g = Gemm r w b")),
		"transposed": end(start().constant("w", 6, 4).node("g = Gemm r w b", intAttr("transB", 1))),
	} {
		m := s.output("y")
		p := mustImport(t, m)
		checkTasks(t, p, "1 matmul+add+tanh+mul 2x3x4 x 4x6 -> 2x3x6")
		checkMeaning(t, m, p)
	}
}

// TestAGatherOfOnePositionCostsNothing: it is a slice, which its reader reads in place.
func TestAGatherOfOnePositionCostsNothing(t *testing.T) {
	for name, at := range map[string]*array.Array{"scalar": array.FromInt64([]int64{-1}), "list": array.FromInt64([]int64{2}, 1)} {
		m := newSketch().input("x", 2, 3, 4).known("at", at).node("e = Exp x").node("g = Gather e at", intAttr("axis", 1)).
			node("y = Softmax g").output("y")
		p := mustImport(t, m)
		if len(p.Tasks) != 2 {
			t.Errorf("%s: became %v", name, taskNames(p))
		}
		checkMeaning(t, m, p)
	}
}
