package graph

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/onnx"
)

// Options are what the user says beside the model.
type Options struct {
	// Shapes fixes what the model leaves open: the shape of an input by its name, or, by the symbol that the model gives an
	// open extent, one number for it wherever it stands.
	Shapes map[string][]int64
}

// Import compiles a model to a program: the same model and options give the same program. Errors name the node or value
// and what to do.
func Import(m *onnx.Model, opts Options) (*Program, error) {
	g, err := build(m, opts)
	if err != nil {
		return nil, err
	}
	for _, pass := range passes {
		if err := pass(g); err != nil {
			return nil, err
		}
		g.removeDead()
	}
	groups := partition(g)
	p, err := emit(g, groups)
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", g.name, err)
	}
	return p, nil
}

// passes run in this order on a graph in which constants are folded already.
var passes = []func(*graph) error{
	removeDead,
	nestConcats,
	foldPads,
	foldBatchNorms,
	fuseLayerNorms,
	sliceGathers,
	liftGemms,
	fuseAttention,
	hoistScales,
	shareTopK,
	mergeSiblings,
	splitDequantised,
	separateOutputs,
	assignLayouts,
	shareMemory,
}

func removeDead(*graph) error { return nil } // Import does it after each pass
