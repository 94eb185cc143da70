package frontend

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/frontend/importer"
	"github.com/tilth-dev/tilth/compiler/frontend/programgen"
	"github.com/tilth-dev/tilth/compiler/frontend/rewrite"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
	"github.com/tilth-dev/tilth/compiler/program"
)

// Options are the user's settings for a model.
type Options struct {
	// Shapes fixes open extents of the model: a shape for the name of an input, or a single number for the symbol
	// of an extent, wherever the symbol occurs.
	Shapes map[string][]int64
	// Values fixes inputs of one element, by name, which are then no inputs of the program.
	Values map[string]float64
	// Open holds the bounds of extents, by symbol, that stay open: each execution chooses them. An axis without a
	// symbol has the name of its input and its number, as in "x.0".
	Open map[string]Bounds
	// Derived gives open extents, by symbol, as expressions of others, such as "past + sequence".
	Derived map[string]string
	// Storage selects how float32 factors of products are stored; see placement.Narrow and rewrite.QuantiseWeights.
	Storage array.Storage
	// UncheckedIndices leaves out the checks that inputs which index axes are in range; kernels clamp them.
	UncheckedIndices bool
	// Quantised, if not nil, receives the number of weights to which Storage.WeightBits was applied, and the total.
	Quantised func(quantised, all int)
	// Verify checks the graph after each stage. It costs time, and is for tests and for locating a faulty pass.
	Verify bool
}

// Import compiles a model to a program, deterministically. Errors name the node or value and the remedy. op.Budget
// bounds the cost.
func Import(m *onnx.Model, opts Options) (*program.Program, error) {
	p, err := importWithin(newBudget(m), m, opts)
	return p, short(err)
}

func newBudget(m *onnx.Model) *op.Budget { return op.NewBudget(op.DefaultLimits, m.ConstantBytes()) }

// short returns an error with a bounded text.
func short(err error) error {
	if err != nil && len(err.Error()) > maxError {
		return shortened{err}
	}
	return err
}

// maxError limits the length of Import's errors in bytes, since names and lists of a model have any length.
const maxError = 600

// shortened is an error without the middle of its text.
type shortened struct{ cause error }

func (s shortened) Error() string {
	text := s.cause.Error()
	return strings.ToValidUTF8(text[:maxError*2/3], "") + " ... " + strings.ToValidUTF8(text[len(text)-maxError/3:], "")
}
func (s shortened) Unwrap() error { return s.cause }

func importWithin(budget *op.Budget, m *onnx.Model, opts Options) (*program.Program, error) {
	return importSeen(budget, m, opts, func(string, *graph.Graph) {})
}

// importSeen imports a model and calls see with the graph after each stage.
func importSeen(budget *op.Budget, m *onnx.Model, opts Options, see func(stage string, g *graph.Graph)) (p *program.Program, err error) {
	defer extent.Catch(&err)
	defer budget.Catch(&err)
	extents, symbols, err := opts.openExtents(m)
	if err != nil {
		return nil, err
	}
	g, kernels, err := kernelsOf(budget, m, opts, symbols, see)
	if err != nil {
		return nil, err
	}
	if p, err = programgen.Program(g, kernels, extents); err != nil {
		return nil, fmt.Errorf("model %q: %w", g.Name, err)
	}
	return p, nil
}

// kernelsOf returns the kernels of a model.
func kernelsOf(budget *op.Budget, m *onnx.Model, opts Options, open []*extent.Symbol, see func(stage string, g *graph.Graph)) (g *graph.Graph, kernels []*graph.Kernel, err error) {
	defer extent.Catch(&err)
	defer budget.Catch(&err)
	g, err = importer.Build(m, importer.Given{Shapes: opts.Shapes, Open: open, Derived: opts.Derived, Values: opts.Values, FloatKernels: opts.Storage.FloatKernels, Unrolled: opts.Storage.Unrolled}, budget)
	if err != nil {
		return nil, nil, err
	}
	after := func(stage string) error {
		see(stage, g)
		if !opts.Verify {
			return nil
		}
		if err := g.Verify(); err != nil {
			return fmt.Errorf("after %s: %w", stage, err)
		}
		return nil
	}
	g.RemoveDead()
	if !opts.UncheckedIndices {
		if g.Checks, err = indexChecks(g); err != nil {
			return nil, nil, err
		}
	}
	if err := after(stageBuild); err != nil {
		return nil, nil, err
	}
	for _, pass := range opts.passes() {
		if err := pass.Run(g); err != nil {
			return nil, nil, err
		}
		g.RemoveDead()
		if err := after(pass.Name); err != nil {
			return nil, nil, err
		}
	}
	kernels = rewrite.Partition(g)
	return g, kernels, after(stagePartition)
}
