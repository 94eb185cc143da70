package frontend

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend/emit"
	"github.com/tilth-dev/tilth/compiler/frontend/fusion"
	"github.com/tilth-dev/tilth/compiler/frontend/importer"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
	"github.com/tilth-dev/tilth/compiler/program"
)

// Options are what the user says beside the model.
type Options struct {
	// Shapes fixes what the model leaves open: the shape of an input by its name, or, by the symbol that the model
	// gives an open extent, one number for it wherever it stands.
	Shapes map[string][]int64
	// Open are the extents, by the symbols that the model gives them, that stay open within bounds: each execution
	// chooses them.
	Open map[string]Bounds
	// Storage is how factors of products in float32 are stored, as placement.Narrow and rewrite.QuantiseWeights say.
	Storage array.Storage
	// examples are the symbols of open extents for which Shapes have numbers, each for one of several imports.
	examples []string
	// Quantised, unless nil, is told how many weights Storage.WeightBits has been applied to, and of how many. With
	// open extents, it is told so more than once.
	Quantised func(quantised, all int)
	// Verify checks the graph after each stage. It takes time, and is for tests and whoever looks for the pass at
	// fault.
	Verify bool
}

// Import compiles a model to a program: the same model and options give the same program. Errors name the node or
// value and what to do. What it costs is bounded by op.Budget.
func Import(m *onnx.Model, opts Options) (*program.Program, error) {
	if len(opts.Open) > 0 {
		p, err := importOpen(m, opts)
		return p, short(err)
	}
	p, err := importWithin(newBudget(m), m, opts)
	return p, short(err)
}

func newBudget(m *onnx.Model) *op.Budget { return op.NewBudget(op.DefaultLimits, m.ConstantBytes()) }

// short is an error whose text is bounded.
func short(err error) error {
	if err != nil && len(err.Error()) > maxError {
		return shortened{err}
	}
	return err
}

// maxError is the length in bytes of the longest error of Import: names and lists of a model have any length.
const maxError = 2000

// shortened is an error whose text is cut.
type shortened struct{ cause error }

func (s shortened) Error() string {
	return strings.ToValidUTF8(s.cause.Error()[:maxError], "") + " ..."
}
func (s shortened) Unwrap() error { return s.cause }

func importWithin(budget *op.Budget, m *onnx.Model, opts Options) (*program.Program, error) {
	return importSeen(budget, m, opts, func(string, *graph.Graph) {})
}

// importSeen imports a model and shows see the graph after each stage.
func importSeen(budget *op.Budget, m *onnx.Model, opts Options, see func(stage string, g *graph.Graph)) (p *program.Program, err error) {
	defer budget.Catch(&err)
	g, kernels, err := kernelsOf(budget, m, opts, see)
	if err != nil {
		return nil, err
	}
	if p, err = emit.Program(g, kernels); err != nil {
		return nil, fmt.Errorf("model %q: %w", g.Name, err)
	}
	return p, nil
}

// kernelsOf is a model as kernels.
func kernelsOf(budget *op.Budget, m *onnx.Model, opts Options, see func(stage string, g *graph.Graph)) (g *graph.Graph, kernels []*graph.Kernel, err error) {
	defer budget.Catch(&err)
	g, err = importer.Build(m, opts.Shapes, opts.examples, budget)
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
	kernels = fusion.Partition(g)
	return g, kernels, after(stagePartition)
}
