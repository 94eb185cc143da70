package programgen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/program"
)

// open adds the open extents that executions choose to the program, in the order of their symbols, the first ones of
// the graph.
func (e *emitter) open(g *graph.Graph, extents []program.Extent) {
	e.program.Extents = extents
	for k, s := range g.Extents.Symbols()[:len(extents)] {
		e.program.Extents[k].Value = e.add(program.Value{Name: s.Name, DType: array.Int64, Alias: -1})
		e.symbols[s] = k
	}
}

// form returns an extent as a linear function of the open ones; ok is false for others.
func (e *emitter) form(x extent.Extent) (f program.Form, ok bool) {
	plus, times, ok := x.Linear()
	f = program.Form{Plus: plus, Times: make([]int64, len(e.symbols))}
	for s, n := range times {
		k, chosen := e.symbols[s]
		if !chosen {
			return f, false
		}
		f.Times[k] = n
	}
	return f, ok
}

// vary records the open axes of an input or output, but those of outputs that executions count.
func (e *emitter) vary(v *graph.Value) error {
	for axis, x := range v.Shape.Extents() {
		if !x.IsOpen() {
			continue
		}
		f, ok := e.form(x)
		if !x.IsSum() || !ok {
			if v.Producer == nil {
				return fmt.Errorf("axis %d of input %q has %v elements, which is no sum of open extents: give those that it divides a step, as in --shape height=32..640/32", axis, v.Name, x)
			}
			continue
		}
		for k, times := range f.Times {
			if times != 0 {
				e.program.Varying = append(e.program.Varying, program.Varying{Value: e.value(v), Axis: axis, Extent: k, Times: times, Plus: f.Plus})
				f.Plus = 0
			}
		}
	}
	return nil
}

// determined returns an error if the shapes of inputs do not determine all extents.
func (e *emitter) determined(g *graph.Graph) error {
	most := make([]int64, len(e.program.Extents))
	for k, x := range e.program.Extents {
		most[k] = x.Max
	}
	var axes []program.Axis
	for _, v := range g.Inputs {
		for axis := range v.Shape.Rank() {
			f := e.program.ExtentOf(e.value(v), axis)
			axes = append(axes, program.Axis{Input: v.Name, Axis: axis, Elements: f.At(most), Form: f})
		}
	}
	if _, err := program.Solve(e.program.Extents, axes); err != nil {
		return fmt.Errorf("%w: fix it by --shape", err)
	}
	return nil
}

// checks derives the checks of indices. It leaves out those that depend on open extents in a way without a form.
func (e *emitter) checks(g *graph.Graph) {
	for _, c := range g.Checks {
		check := program.IndexCheck{Input: slices.Index(g.Inputs, c.Input)}
		first, known := e.form(c.First)
		size, ok := e.form(c.Extent)
		ok = ok && known
		for k, count := range c.Counts {
			f, known := e.form(count)
			ok = ok && known
			check.Axes = append(check.Axes, program.StridedAxis{Count: f, Stride: c.Strides[k]})
		}
		if check.First, check.Extent = first, size; ok {
			e.program.AddCheck(check)
		}
	}
}

// Values describes the values of extents, for messages and names.
func Values(extents []program.Extent, at []int64) string {
	list := make([]string, len(at))
	for k, x := range extents {
		list[k] = fmt.Sprintf("%s=%d", x.Name, x.Whole(at[k]))
	}
	return strings.Join(list, ", ")
}
