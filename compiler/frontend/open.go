package frontend

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/frontend/emit"
	"github.com/tilth-dev/tilth/compiler/frontend/importer"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
)

// Bounds are the least and the most that an open extent may be, and what is known of how often it is what.
type Bounds struct {
	Least, Most int64
	// Caps are numbers up to which there shall be kernels of their own; nil leaves the choice to the compiler.
	Caps []int64
	// Frequencies are how often an execution has an extent, in any unit; nil where that is not known.
	Frequencies map[int64]float64
}

// maxOpen bounds the extents that a model leaves open: each has the model imported twice more.
const maxOpen = 4

// importOpen compiles a model some of whose extents stay open. Shapes of operators are numbers, so it imports the
// model with several: what changes with an extent, and how, is what the program says of any.
func importOpen(m *onnx.Model, opts Options) (_ *program.Program, err error) {
	names := slices.Sorted(maps.Keys(opts.Open))
	if len(names) > maxOpen {
		return nil, fmt.Errorf("%d extents are open, more than %d: fix some by --shape", len(names), maxOpen)
	}
	var extents []program.Extent
	for _, name := range names {
		b := opts.Open[name]
		if b.Least < 1 || b.Most <= b.Least {
			return nil, fmt.Errorf("%s cannot be in %d..%d: the bounds must be numbers from 1 on, the second of them the larger", name, b.Least, b.Most)
		}
		if _, fixed := opts.Shapes[name]; fixed {
			return nil, fmt.Errorf("%s is fixed and open at once", name)
		}
		e := program.Extent{Name: name, Least: b.Least, Most: b.Most}
		if e.Caps, err = b.caps(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		e.Shares = b.shares(e.Caps)
		extents = append(extents, e)
	}
	if n := combinations(extents); n > maxVariants {
		return nil, fmt.Errorf("there would be %d kernels for each task, more than %d: give the extents fewer caps, as in --shape %s=%d..%d:%d",
			n, maxVariants, extents[0].Name, extents[0].Least, extents[0].Most, extents[0].Least)
	}
	var first error
	for _, near := range neighbours {
		var at [][]int64
		for _, e := range extents {
			at = append(at, near(e.Most))
		}
		p, err := importSamples(m, opts, extents, at)
		if err == nil {
			return p, nil
		}
		first = errors.Join(first, err)
		if first != err { // the first is of the samples that are most alike
			first = unjoin(first)
		}
	}
	return nil, first
}

// unjoin is the first of joined errors.
func unjoin(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()[0]
	}
	return err
}

// neighbours are two other numbers for each extent, in the order in which they are tried. What passes decide by sizes
// and divisors is most alike where they are half and three quarters of it.
var neighbours = []func(most int64) []int64{
	func(most int64) []int64 { return []int64{max(2, most/2), max(3, most*3/4)} },
	func(most int64) []int64 { return []int64{most - 1, most - 2} },
	func(most int64) []int64 { return []int64{2 * most, 3 * most} },
	func(most int64) []int64 { return []int64{most + 1, most + 2} },
}

// importSamples imports a model with the most of each extent, with two others of each alone, and with one of all.
func importSamples(m *onnx.Model, opts Options, extents []program.Extent, at [][]int64) (*program.Program, error) {
	var most, all []int64
	for k, e := range extents {
		if at[k][0] == at[k][1] || slices.Contains(at[k], e.Most) || slices.Min(at[k]) < 2 {
			return nil, fmt.Errorf("%s cannot be open with at most %d: there are too few numbers to tell how the model depends on it", e.Name, e.Most)
		}
		most, all = append(most, e.Most), append(all, at[k][0])
	}
	choices := [][]int64{most}
	for k := range extents {
		for _, n := range at[k] {
			choice := slices.Clone(most)
			choice[k] = n
			choices = append(choices, choice)
		}
	}
	if len(extents) > 1 {
		choices = append(choices, all)
	}
	var samples []emit.Sample
	for _, choice := range choices {
		g, kernels, err := kernelsOf(newBudget(m), m, opts.at(extents, choice), func(string, *graph.Graph) {})
		if err != nil {
			return nil, err
		}
		samples = append(samples, emit.Sample{Graph: g, Kernels: kernels, Extents: choice})
	}
	if err := checkShapes(m, opts, extents, choices); err != nil {
		return nil, err
	}
	p, err := emit.Open(extents, samples)
	if err != nil {
		return nil, fmt.Errorf("model %q with open extents: %w", m.Graph.Name, err)
	}
	return p, nil
}

// at are the options with numbers for the open extents.
func (o Options) at(extents []program.Extent, numbers []int64) Options {
	shapes := maps.Clone(o.Shapes)
	if shapes == nil {
		shapes = map[string][]int64{}
	}
	for k, e := range extents {
		shapes[e.Name] = numbers[k : k+1]
	}
	o.Shapes, o.Open = shapes, nil
	return o
}

// checkShapes refuses a model whose shapes are not those of one form over all of the bounds: that the least numbers
// have it, too, rules out what is cut off from some number on, as by a slice up to a constant.
func checkShapes(m *onnx.Model, opts Options, extents []program.Extent, choices [][]int64) error {
	var least []int64
	for _, e := range extents {
		least = append(least, e.Least)
	}
	choices = append(slices.Clone(choices), least)
	var graphs []*graph.Graph
	for _, choice := range choices {
		g, err := build(m, opts.at(extents, choice).Shapes)
		if err != nil {
			return fmt.Errorf("with the least extents: %w", err)
		}
		graphs = append(graphs, g)
	}
	return emit.CheckShapes(extents, choices, graphs)
}

// build is a model as operators.
func build(m *onnx.Model, shapes map[string][]int64) (g *graph.Graph, err error) {
	budget := newBudget(m)
	defer budget.Catch(&err)
	if g, err = importer.Build(m, shapes, budget); err == nil {
		g.RemoveDead()
	}
	return g, err
}
