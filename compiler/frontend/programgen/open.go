package programgen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/program"
)

// Sample holds the kernels of a model for particular values of the open extents.
type Sample struct {
	Graph   *graph.Graph
	Kernels []*graph.Kernel
	// Extents holds the values, in the order of the open extents.
	Extents []int64
}

// Open returns the program of a model with open extents. It derives the computation for any extents from samples.
// The first sample has the maximum of each extent. Two of the others differ in one extent alone, for each extent;
// there may be more. Errors name the kernel that depends on an extent in a way without a general form.
func Open(extents []program.Extent, samples []Sample) (*program.Program, error) {
	o := &opener{extents: extents}
	for _, s := range samples {
		o.emitters, o.at, o.kernels = append(o.emitters, newEmitter(s.Graph)), append(o.at, s.Extents), append(o.kernels, s.Kernels)
		if len(s.Graph.Open) > 0 {
			return nil, fmt.Errorf("output %q has an extent that depends on data: fix the extents of inputs by --shape", s.Graph.Outputs[s.Graph.Open[0].Output].Name)
		}
		if len(s.Kernels) != len(samples[0].Kernels) {
			return nil, fmt.Errorf("the model has %d kernels with %s and %d with %s: give %s other bounds, or fix it by --shape", len(samples[0].Kernels), o.say(0),
				len(s.Kernels), o.say(len(o.at)-1), o.names())
		}
	}
	e := o.emitters[0]
	for k, x := range extents {
		e.program.Extents = append(e.program.Extents, x)
		e.program.Extents[k].Value = e.add(program.Value{Name: x.Name, DType: array.Int64, Alias: -1})
		o.counts = append(o.counts, expr.NewCount(x.Name, x.Max))
	}
	for k, kernel := range samples[0].Kernels {
		if err := o.call(k); err != nil {
			return nil, fmt.Errorf("kernel of node %q (%s): %w", kernel.Anchor.Name, kernel.Anchor.Op, err)
		}
	}
	for k, s := range samples {
		o.emitters[k].outputs(s.Graph)
	}
	if err := o.values(); err != nil {
		return nil, err
	}
	if err := o.checks(samples); err != nil {
		return nil, err
	}
	e.program.FindConditions()
	return e.program, nil
}

// opener derives from samples how a model depends on its open extents.
type opener struct {
	extents []program.Extent
	// emitters, at and kernels are indexed by sample.
	emitters []*emitter
	at       [][]int64
	kernels  [][]*graph.Kernel
	// counts holds the workload inputs with the extents of an execution.
	counts []*expr.Tensor
}

// say describes a sample's extents.
func (o *opener) say(sample int) string { return Values(o.extents, o.at[sample]) }

// Values describes the values of extents, for messages.
func Values(extents []program.Extent, at []int64) string {
	list := make([]string, len(at))
	for k, x := range extents {
		list[k] = fmt.Sprintf("%s=%d", x.Name, at[k])
	}
	return strings.Join(list, ", ")
}

// call emits a kernel.
func (o *opener) call(k int) error {
	g := &general{opener: o}
	var all [][]int
	for s, e := range o.emitters {
		w, args, err := e.lower(o.kernels[s][k])
		if err != nil {
			return err
		}
		g.samples = append(g.samples, newSampled(w))
		all = append(all, args)
		if len(args) != len(all[0]) {
			return g.errOther()
		}
	}
	args := all[0]
	for i, t := range g.samples[0].w.Args() {
		if o.begins(column(all, i)) {
			t.Strides = t.MemoryStrides() // explicit strides mean that it need not be aligned
		}
	}
	w, err := g.workload()
	if err != nil {
		return err
	}
	values := map[*expr.Tensor]int{}
	for i, t := range g.samples[0].w.Args() {
		values[g.known(t)] = args[i]
	}
	e := o.emitters[0]
	for i, t := range o.counts {
		values[t] = e.program.Extents[i].Value
	}
	args = args[:0:0]
	for _, t := range w.Args() {
		args = append(args, values[t])
	}
	kernel := o.kernels[0][k]
	call := program.Call{Name: callName(kernel), Task: e.task(taskName(kernel), w.Merge()), Args: args}
	share := 1.0
	if w.IsOpen() {
		if call.Variants, share, err = g.variants(w, taskName(kernel)); err != nil {
			return err
		}
	}
	e.program.Tasks[call.Task].Executions += share
	e.program.Calls = append(e.program.Calls, call)
	return nil
}

// begins reports whether a value, by sample, is a part of another one with a start that depends on the extents.
func (o *opener) begins(value []int) bool {
	var first []int64
	for s, e := range o.emitters {
		v := e.program.Values[value[s]]
		if v.Alias < 0 {
			return false
		}
		at := digits(v.Offset, e.program.Values[v.Alias].Shape)
		if s > 0 && !slices.Equal(at, first) {
			return true
		}
		first = at
	}
	return false
}

// fit returns the form of a number from its values in the samples; ok is false if it has no form.
func (o *opener) fit(values []int64) (f program.Form, ok bool) {
	f = program.Form{Times: make([]int64, len(o.extents)), Plus: values[0]}
	for k := range o.extents {
		s := slices.IndexFunc(o.at, func(at []int64) bool { return at[k] != o.at[0][k] })
		distance := o.at[0][k] - o.at[s][k]
		f.Times[k] = (values[0] - values[s]) / distance
		f.Plus -= f.Times[k] * o.at[0][k]
	}
	for s, v := range values {
		if f.At(o.at[s]) != v {
			return f, false
		}
	}
	return f, true
}

// varies reports whether values differ.
func varies[T comparable](values []T) bool {
	return slices.ContainsFunc(values, func(v T) bool { return v != values[0] })
}

// values checks that values correspond in all samples, and records the open axes of inputs and outputs.
func (o *opener) values() error {
	p := o.emitters[0].program
	for _, e := range o.emitters[1:] { // the extents are not among theirs
		if len(e.program.Values)+len(o.extents) != len(p.Values) {
			return fmt.Errorf("the values of the model depend on the extents")
		}
	}
	for k := range p.Values {
		if k >= p.Extents[0].Value && k < p.Extents[0].Value+len(o.extents) {
			continue
		}
		v := &valueOf{opener: o}
		for s := range o.emitters {
			v.index = append(v.index, o.inSample(s, k))
		}
		if err := v.check(); err != nil {
			return fmt.Errorf("value %q: %w", p.Values[k].Name, err)
		}
		if slices.Contains(p.Inputs, k) || slices.Contains(p.Outputs, k) {
			if err := v.note(); err != nil {
				return fmt.Errorf("%q: %w", p.Values[k].Name, err)
			}
		}
	}
	return nil
}

// checks derives the checks of indices. It leaves out views of inputs whose memory has no general form.
func (o *opener) checks(samples []Sample) error {
	p := o.emitters[0].program
	for k, c := range samples[0].Graph.Checks {
		var sizes []int64
		var elements view
		for _, s := range samples {
			if len(s.Graph.Checks) == len(samples[0].Graph.Checks) {
				own := s.Graph.Checks[k]
				sizes = append(sizes, own.Extent)
				elements.add(own.Shape, own.First, own.Counts, own.Strides)
			}
		}
		extent, ok := program.Form{}, len(sizes) == len(samples)
		if ok {
			extent, ok = o.fit(sizes)
		}
		if !ok {
			return fmt.Errorf("input %q indexes an axis whose extent is not in proportion to %s: fix it by --shape, or compile with --unchecked-indices", c.Input.Name, o.names())
		}
		input := slices.Index(samples[0].Graph.Inputs, c.Input)
		if check, ok := o.indexCheck(elements, p.MemoryOf(p.Inputs[input])); ok {
			check.Input, check.Extent = input, extent
			p.AddCheck(check)
		}
	}
	return nil
}

// indexCheck returns the check of a view of an input in memory of a shape; ok is false if it has no general form.
func (o *opener) indexCheck(v view, memory []int64) (c program.IndexCheck, ok bool) {
	last := len(v.roots[0]) - 1
	memory = append(slices.Clone(memory[:last]), array.Elements(memory[last:]))
	for s := range v.roots {
		if len(v.shapes[s]) != len(v.shapes[0]) || !v.isSame(s) {
			return c, false
		}
	}
	begins, ok := o.forms(v.begins)
	counts, fits := o.forms(v.shapes)
	if !ok || !fits || !o.staysInside(v) {
		return c, false
	}
	c.First = o.offset(begins, memory)
	for k, count := range counts {
		stride := int64(0)
		for d, n := range expr.RowMajorStrides(memory) {
			stride += n * digits(v.strides[0][k], v.roots[0])[d]
		}
		c.Axes = append(c.Axes, program.StridedAxis{Count: count, Stride: stride})
	}
	return c, true
}

// inSample returns the number in a sample of a value of the program.
func (o *opener) inSample(sample, k int) int {
	if sample > 0 && k >= o.emitters[0].program.Extents[0].Value {
		return k - len(o.extents)
	}
	return k
}
