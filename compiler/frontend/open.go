package frontend

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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

// maxExtent bounds an open extent.
const maxExtent = 1 << 24

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
		if b.Least < 0 || b.Most <= b.Least {
			return nil, fmt.Errorf("%s cannot be in %d..%d: the bounds must be numbers from 0 on, the second of them the larger", name, b.Least, b.Most)
		}
		if b.Most > maxExtent {
			return nil, fmt.Errorf("%s cannot be up to %d: memory is laid out for the most, which is %d at the largest", name, b.Most, maxExtent)
		}
		if _, fixed := opts.Shapes[name]; fixed {
			return nil, fmt.Errorf("%s is fixed and open at once", name)
		}
		if slices.ContainsFunc(m.Graph.Inputs, func(in *onnx.ValueInfo) bool { return in.Name == name }) {
			return nil, fmt.Errorf("%s is an input: bounds are for the symbols of its open extents", name)
		}
		extents = append(extents, program.Extent{Name: name, Least: b.Least, Most: b.Most})
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
			at = append(at, near(e.Most))
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
		most, all = append(most, e.Most), append(all, at[k][k%2]) // by unlike steps
	}
	choices := [][]int64{most}
	for k := range extents {
		for _, n := range at[k] {
			choices = append(choices, replaced(most, k, n))
		}
	}
	if len(extents) > 1 {
		choices = append(choices, all)
	}
	var samples []emit.Sample
	for _, choice := range choices {
		g, kernels, err := kernelsOf(newBudget(m), m, opts.at(extents, choice), func(string, *graph.Graph) {})
		if err != nil {
			return nil, with(extents, choice, err)
		}
		samples = append(samples, emit.Sample{Graph: g, Kernels: kernels, Extents: choice})
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
		o.examples = append(o.examples[:k:k], e.Name)
	}
	o.Shapes, o.Open = shapes, nil
	return o
}

// checkForms refuses a model that depends on its extents in another way than by factors and sums. Numbers all over the
// bounds, odd ones among them, tell what is cut off from some number on, rounded or chosen by a comparison.
func checkForms(m *onnx.Model, opts Options, extents []program.Extent) error {
	var most []int64
	for _, e := range extents {
		most = append(most, e.Most)
	}
	choices := [][]int64{most}
	for k, e := range extents { // of each alone
		choices = append(choices, replaced(most, k, leastSeen(e)))
	}
	for q := range probes {
		var choice []int64
		for k, e := range extents {
			choice = append(choice, probe(e, (q+k*probes/2)%probes))
		}
		choices = append(choices, choice)
	}
	for corner := range 1 << len(extents) {
		choice := most
		for k, e := range extents {
			if corner>>k&1 == 1 {
				choice = replaced(choice, k, leastSeen(e))
			}
		}
		choices = append(choices, choice)
	}
	graphs, err := opts.graphs(m, extents, choices)
	if err != nil {
		return err
	}
	if err := emit.CheckForms(extents, choices, graphs); err != nil {
		return err
	}
	none := most
	for k, e := range extents {
		if e.Least == 0 {
			none = replaced(none, k, 0)
			choices = append(choices, replaced(most, k, 0), none)
		}
	}
	empty, err := opts.graphs(m, extents, choices[len(graphs):])
	if err != nil {
		return err
	}
	return emit.CheckResults(extents, choices, append(graphs, empty...), len(graphs))
}

// leastSeen is the least number of an extent with which operators are the same as with more: those of nothing are left
// out.
func leastSeen(e program.Extent) int64 { return max(e.Least, 1) }

func replaced(list []int64, k int, n int64) []int64 {
	list = slices.Clone(list)
	list[k] = n
	return list
}

// graphs are a model as operators with each choice of numbers.
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

// probes is how many numbers of an extent are looked at beside the least and the most.
const probes = 16

// probe is one of these: those next to the ends, and others all over, most of them odd.
func probe(e program.Extent, q int) int64 {
	switch q {
	case 0:
		return min(e.Least+1, e.Most)
	case 1:
		return max(e.Most-1, leastSeen(e))
	}
	n := e.Least + (e.Most-e.Least)/probes*int64(q) + (e.Most-e.Least)%probes*int64(q)/probes
	if q%4 > 0 {
		n |= 1
	}
	return min(max(n, leastSeen(e)), e.Most)
}

// with is an error that comes with numbers in place of extents.
func with(extents []program.Extent, numbers []int64, err error) error {
	list := make([]string, len(extents))
	for k, e := range extents {
		list[k] = fmt.Sprintf("%s=%d", e.Name, numbers[k])
	}
	return fmt.Errorf("with %s: %w", strings.Join(list, ", "), err)
}

// build is a model as operators.
func build(m *onnx.Model, opts Options) (g *graph.Graph, err error) {
	budget := newBudget(m)
	defer budget.Catch(&err)
	if g, err = importer.Build(m, opts.Shapes, opts.examples, budget); err == nil {
		g.RemoveDead()
	}
	return g, err
}
