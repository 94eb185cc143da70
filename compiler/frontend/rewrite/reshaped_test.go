package rewrite_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// TestDenseLayersOfSequencesTakeInWhatFollows: a Gemm between two reshapes is a product on the sequence's axes.
func TestDenseLayersOfSequencesTakeInWhatFollows(t *testing.T) {
	flat, deep := array.FromInt64([]int64{-1, 4}, 2), array.FromInt64([]int64{2, 3, 6}, 3)
	start := func() modeltest.Model {
		return modeltest.New().Input("x", 2, 3, 4).Known("flat", flat).Known("deep", deep).Constant("b", 6).Node("r = Reshape x flat")
	}
	end := func(s modeltest.Model) modeltest.Model {
		return s.Node("d = Reshape g deep").Node("t = Tanh d").Node("y = Mul t d")
	}
	for _, s := range map[string]modeltest.Model{
		"plain":      end(start().Constant("w", 4, 6).Node("g = Gemm r w b")),
		"transposed": end(start().Constant("w", 6, 4).Node("g = Gemm r w b", modeltest.Int("transB", 1))),
	} {
		m := s.Output("y")
		p := modeltest.Import(t, m)
		modeltest.CheckTasks(t, p, "1 matmul+add+tanh+mul 2x3x4 x 4x6 -> 2x3x6")
		modeltest.CheckMeaning(t, m, p)
	}
}

// TestReshapedGemmKeepsItsName matters where it is an output.
func TestReshapedGemmKeepsItsName(t *testing.T) {
	m := modeltest.New().Input("x", 6, 4).Constant("w", 4, 5).Constant("b", 5).Node("g = Gemm x w b").
		Known("deep", array.FromInt64([]int64{2, 3, 5}, 3)).Node("y = Reshape g deep").Output("y")
	p := modeltest.Import(t, m)
	if name := p.Values[p.Outputs[0]].Name; name != "y" {
		t.Errorf("the output is %q, want y", name)
	}
}

// TestGatherOfOnePositionCostsNothing: it is a slice, which its reader reads in place.
func TestGatherOfOnePositionCostsNothing(t *testing.T) {
	for name, at := range map[string]*array.Array{"scalar": array.FromInt64([]int64{-1}), "list": array.FromInt64([]int64{2}, 1)} {
		m := modeltest.New().Input("x", 2, 3, 4).Known("at", at).Node("e = Exp x").Node("g = Gather e at", modeltest.Int("axis", 1)).
			Node("y = Softmax g").Output("y")
		p := modeltest.Import(t, m)
		if len(p.Tasks) != 2 {
			t.Errorf("%s: became %v", name, modeltest.TaskNames(p))
		}
		modeltest.CheckMeaning(t, m, p)
	}
}
