package frontend

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/frontend/importer"
	"github.com/tilth-dev/tilth/compiler/frontend/programgen"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
)

// Bounds holds the bounds of an open extent and, if known, its distribution.
type Bounds struct {
	Min, Max int64
	// Caps lists extents that get kernels of their own; with nil, the compiler chooses.
	Caps []int64
	// Frequencies maps extents to their frequency in any unit; nil if unknown.
	Frequencies map[int64]float64
}

// maxExtent limits an open extent.
const maxExtent = 1 << 24

// maxOpen limits the open extents of a model: each requires two more imports.
const maxOpen = 4

// importOpen compiles a model with open extents. Shapes of operators are numbers, so it imports the model with
// several values and derives from the differences how the program depends on the extents.
func importOpen(m *onnx.Model, opts Options) (_ *program.Program, err error) {
	names := slices.Sorted(maps.Keys(opts.Open))
	if len(names) > maxOpen {
		return nil, fmt.Errorf("%d extents are open, more than %d: fix some by --shape", len(names), maxOpen)
	}
	var extents []program.Extent
	for _, name := range names {
		b := opts.Open[name]
		if b.Min < 0 || b.Max <= b.Min {
			return nil, fmt.Errorf("%s cannot be in %d..%d: the bounds must be >= 0, the second one larger", name, b.Min, b.Max)
		}
		if b.Max > maxExtent {
			return nil, fmt.Errorf("%s cannot be up to %d: memory is laid out for the most, which is %d at the largest", name, b.Max, maxExtent)
		}
		if _, fixed := opts.Shapes[name]; fixed {
			return nil, fmt.Errorf("%s is fixed and open at once", name)
		}
		if slices.ContainsFunc(m.Graph.Inputs, func(in *onnx.ValueInfo) bool { return in.Name == name }) {
			return nil, fmt.Errorf("%s is an input: bounds are for the symbols of its open extents", name)
		}
		extents = append(extents, program.Extent{Name: name, Min: b.Min, Max: b.Max})
	}
	if err := choose(extents, opts.Open); err != nil {
		return nil, err
	}
	if err := checkForms(m, opts, extents); err != nil {
		return nil, err
	}
	for k, near := range neighbours {
		var at [][]int64
		for _, e := range extents {
			at = append(at, near(e.Max))
		}
		p, wrong := importSamples(m, opts, extents, at)
		if wrong == nil {
			return p, nil
		}
		if k == 0 || err == nil { // the first are most alike
			err = wrong
		}
	}
	return nil, err
}

// neighbours returns two other values for each extent, in the order in which they are tried. Decisions of passes
// that depend on sizes and divisors differ least at half and three quarters of the maximum.
var neighbours = []func(limit int64) []int64{
	func(limit int64) []int64 { return []int64{max(2, limit/2), max(3, limit*3/4)} },
	func(limit int64) []int64 { return []int64{limit - 1, limit - 2} },
	func(limit int64) []int64 { return []int64{2 * limit, 3 * limit} },
	func(limit int64) []int64 { return []int64{limit + 1, limit + 2} },
}

// importSamples imports a model with the maximum of each extent, with two other values of each alone, and with
// other values of all.
func importSamples(m *onnx.Model, opts Options, extents []program.Extent, at [][]int64) (*program.Program, error) {
	var maxima, all []int64
	for k, e := range extents {
		if at[k][0] == at[k][1] || slices.Contains(at[k], e.Max) || slices.Min(at[k]) < 2 {
			return nil, fmt.Errorf("%s cannot be open with at most %d: there are too few numbers to tell how the model depends on it", e.Name, e.Max)
		}
		maxima, all = append(maxima, e.Max), append(all, at[k][k%2]) // by different steps
	}
	choices := [][]int64{maxima}
	for k := range extents {
		for _, n := range at[k] {
			choices = append(choices, replaced(maxima, k, n))
		}
	}
	if len(extents) > 1 {
		choices = append(choices, all)
	}
	var samples []programgen.Sample
	for _, choice := range choices {
		g, kernels, err := kernelsOf(newBudget(m), m, opts.at(extents, choice), func(string, *graph.Graph) {})
		if err != nil {
			return nil, with(extents, choice, err)
		}
		samples = append(samples, programgen.Sample{Graph: g, Kernels: kernels, Extents: choice})
	}
	p, err := programgen.Open(extents, samples)
	if err != nil {
		return nil, fmt.Errorf("model %q with open extents: %w", m.Graph.Name, err)
	}
	return p, nil
}

// at returns the options with values for the open extents.
func (o Options) at(extents []program.Extent, numbers []int64) Options {
	shapes := maps.Clone(o.Shapes)
	if shapes == nil {
		shapes = map[string][]int64{}
	}
	for k, e := range extents {
		shapes[e.Name] = numbers[k : k+1]
		o.examples = append(o.examples[:k:k], e.Name)
	}
	o.Shapes, o.Open = shapes, nil
	return o
}

// checkForms rejects a model that depends on its extents other than by factors and sums. It probes values
// throughout the bounds, including odd ones, which reveal clipping, rounding and comparisons.
func checkForms(m *onnx.Model, opts Options, extents []program.Extent) error {
	var maxima []int64
	for _, e := range extents {
		maxima = append(maxima, e.Max)
	}
	choices := [][]int64{maxima}
	for k, e := range extents { // each extent alone
		choices = append(choices, replaced(maxima, k, minSeen(e)))
	}
	for q := range probes {
		var choice []int64
		for k, e := range extents {
			choice = append(choice, probe(e, (q+k*probes/2)%probes))
		}
		choices = append(choices, choice)
	}
	for corner := range 1 << len(extents) {
		choice := maxima
		for k, e := range extents {
			if corner>>k&1 == 1 {
				choice = replaced(choice, k, minSeen(e))
			}
		}
		choices = append(choices, choice)
	}
	graphs, err := opts.graphs(m, extents, choices)
	if err != nil {
		return err
	}
	if err := programgen.CheckForms(extents, choices, graphs); err != nil {
		return err
	}
	none := maxima
	for k, e := range extents {
		if e.Min == 0 {
			none = replaced(none, k, 0)
			choices = append(choices, replaced(maxima, k, 0), none)
		}
	}
	empty, err := opts.graphs(m, extents, choices[len(graphs):])
	if err != nil {
		return err
	}
	return programgen.CheckResults(extents, choices, append(graphs, empty...), len(graphs))
}

// minSeen returns the smallest value of an extent that leaves the operators unchanged: those on empty values are
// dropped.
func minSeen(e program.Extent) int64 { return max(e.Min, 1) }

func replaced(list []int64, k int, n int64) []int64 {
	list = slices.Clone(list)
	list[k] = n
	return list
}

// graphs returns the model as operators for each choice of extents.
func (o Options) graphs(m *onnx.Model, extents []program.Extent, choices [][]int64) (list []*graph.Graph, err error) {
	for _, choice := range choices {
		g, err := build(m, o.at(extents, choice))
		if err != nil {
			return nil, with(extents, choice, err)
		}
		list = append(list, g)
	}
	return list, nil
}

// probes is the number of values tried per extent in addition to the bounds.
const probes = 16

// probe returns one of these: values next to the bounds, and others in between, most of them odd.
func probe(e program.Extent, q int) int64 {
	switch q {
	case 0:
		return min(e.Min+1, e.Max)
	case 1:
		return max(e.Max-1, minSeen(e))
	}
	n := e.Min + (e.Max-e.Min)/probes*int64(q) + (e.Max-e.Min)%probes*int64(q)/probes
	if q%4 > 0 {
		n |= 1
	}
	return min(max(n, minSeen(e)), e.Max)
}

// with adds the values of the extents to an error.
func with(extents []program.Extent, numbers []int64, err error) error {
	return fmt.Errorf("with %s: %w", programgen.Values(extents, numbers), err)
}

// build returns the model as operators.
func build(m *onnx.Model, opts Options) (g *graph.Graph, err error) {
	budget := newBudget(m)
	defer budget.Catch(&err)
	if g, err = importer.Build(m, opts.given(), budget); err == nil {
		g.RemoveDead()
	}
	return g, err
}
