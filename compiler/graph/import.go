package graph

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// Options are what the user says beside the model.
type Options struct {
	// Shapes fixes what the model leaves open: the shape of an input by its name, or, by the symbol that the model
	// gives an open extent, one number for it wherever it stands.
	Shapes map[string][]int64
}

// Import compiles a model to a program: the same model and options give the same program. Errors name the node or
// value and what to do. What it costs is bounded by op.Budget.
func Import(m *onnx.Model, opts Options) (*Program, error) {
	p, err := importWithin(op.NewBudget(op.DefaultLimits, m.ConstantBytes()), m, opts)
	if err != nil && len(err.Error()) > maxError {
		return nil, shortened{err}
	}
	return p, err
}

// maxError is the length in bytes of the longest error of Import: names and lists of a model have any length.
const maxError = 2000

// shortened is an error whose text is cut.
type shortened struct{ cause error }

func (s shortened) Error() string {
	return strings.ToValidUTF8(s.cause.Error()[:maxError], "") + " ..."
}
func (s shortened) Unwrap() error { return s.cause }

func importWithin(budget *op.Budget, m *onnx.Model, opts Options) (p *Program, err error) {
	defer budget.Catch(&err)
	g, err := build(m, opts, budget)
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
	if p, err = emit(g, groups); err != nil {
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
	fuseHorizontally,
	splitDequantised,
	separateOutputs,
	assignLayouts,
	shareMemory,
}

func removeDead(*graph) error { return nil } // Import does it after each pass
