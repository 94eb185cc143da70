package programgen

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/frontend/layout"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/op"
	"github.com/tilth-dev/tilth/compiler/program"
)

// emitter turns kernels into calls.
type emitter struct {
	program *program.Program
	// budget limits the cost of rearranging constants.
	budget *op.Budget
	// index maps values, and constants with their layouts, to value numbers of the program.
	index map[string]int
	tasks map[string]int
	// symbols maps the symbols of open extents to their numbers in the program.
	symbols map[*extent.Symbol]int
	// loops maps the loops that began to their numbers in the program; running holds those not yet ended.
	loops   map[*graph.Loop]int
	running []*graph.Loop
}

// Program returns the program that runs the kernels of a graph in order. The extents are those of the graph's symbols.
// Errors name the kernel.
func Program(g *graph.Graph, kernels []*graph.Kernel, extents []program.Extent) (*program.Program, error) {
	e := newEmitter(g)
	e.open(g, extents)
	for _, kernel := range kernels {
		e.loop(kernel.Anchor.Loops)
		if err := e.call(kernel); err != nil {
			return nil, fmt.Errorf("kernel of node %q (%s): %w", kernel.Anchor.Name, kernel.Anchor.Op, err)
		}
	}
	e.loop(nil)
	e.outputs(g)
	for _, v := range slices.Concat(g.Inputs, g.Outputs[:g.Own]) {
		if err := e.vary(v); err != nil {
			return nil, err
		}
	}
	if err := e.determined(g); err != nil {
		return nil, err
	}
	e.checks(g)
	e.program.FindConditions()
	e.program.CountRepeats()
	return e.program, nil
}

func newEmitter(g *graph.Graph) *emitter {
	e := &emitter{program: &program.Program{Name: g.Name}, budget: g.Budget, index: map[string]int{}, tasks: map[string]int{}, symbols: map[*extent.Symbol]int{}, loops: map[*graph.Loop]int{}}
	for _, v := range g.Inputs {
		e.program.Inputs = append(e.program.Inputs, e.value(v))
	}
	return e
}

// outputs sets the outputs, of which requirements and the counts of open outputs are the last.
func (e *emitter) outputs(g *graph.Graph) {
	var outputs []int
	for _, v := range g.Outputs {
		outputs = append(outputs, e.value(v))
	}
	for k, why := range g.Required {
		e.program.Required = append(e.program.Required, program.Requirement{Value: outputs[len(outputs)-len(g.Required)+k], Why: why})
	}
	for _, o := range g.Open {
		e.program.Open = append(e.program.Open, program.Open{Output: o.Output, Axis: o.Axis, Count: outputs[o.Count]})
	}
	e.program.Outputs = outputs[:g.Own]
}

// value returns the number of an input or computed value; a value in another's memory is an alias.
func (e *emitter) value(v *graph.Value) int {
	if v.Const != nil {
		return e.constant(v, op.RowMajor(v.Shape.Rank()))
	}
	key := fmt.Sprint(v.ID)
	if k, ok := e.index[key]; ok {
		return k
	}
	made := program.Value{Name: v.Name, DType: v.InMemory(), Shape: layout.Physical(v), Alias: -1}
	if p, _ := layout.Of(v); p.Root != v {
		made.Alias = e.value(p.Root)
		e.place(&made, p.Offset)
		if !p.IsDense(made.Shape) {
			made.Strides = p.Strides
		}
	}
	e.index[key] = e.add(made)
	return e.index[key]
}

// place sets the start of a value that is part of another one: a sum of extents, of the numbers of iterations, and of
// how many the loops have.
func (e *emitter) place(v *program.Value, start extent.Extent) {
	add := func(to *[]int64, at, of int, n int64) {
		if *to == nil {
			*to = make([]int64, of)
		}
		(*to)[at] += n
	}
	if _, _, ok := start.Linear(); !ok { // results that a loop stacks backwards begin before its end
		whole := start
		whole.Each(func(s *extent.Symbol) {
			if l, n := graph.LoopOf(s), whole.Coefficient(s); l != nil && n < 0 && (v.Lengths == nil || v.Lengths[e.loops[l]] == 0) {
				start = start.Plus(l.Count.Times(extent.Of(n)))
				add(&v.Lengths, e.loops[l], len(e.loops), -n)
			}
		})
	}
	plus, times, ok := start.Linear()
	if !ok {
		panic(&extent.OpenError{Extent: start})
	}
	v.Offset = plus
	for s, n := range times {
		if l := graph.LoopOf(s); l != nil {
			add(&v.Turns, e.loops[l], len(e.loops), n)
		} else {
			add(&v.Moves, e.symbols[s], len(e.symbols), n)
		}
	}
}

// loop ends the loops that are not around the next kernel, and begins those that are.
func (e *emitter) loop(around []*graph.Loop) {
	same := 0
	for same < min(len(around), len(e.running)) && around[same] == e.running[same] {
		same++
	}
	for _, l := range slices.Backward(e.running[same:]) {
		made := &e.program.Loops[e.loops[l]]
		made.End = len(e.program.Calls)
		for k, next := range l.Next() {
			made.States[k].Next = e.value(next)
		}
	}
	for _, l := range around[same:] {
		e.loops[l] = len(e.program.Loops)
		made := program.Loop{
			Name: l.Name, First: len(e.program.Calls), Counter: e.value(l.Counter), Iterations: e.value(l.Iterations()),
			Most: l.Count.Max(), While: l.While,
		}
		if _, ok := e.form(l.Count); ok {
			made.Count = l.Count.String()
		}
		for k, state := range l.States() {
			made.States = append(made.States, program.State{Init: e.value(l.Control[k].Operands[0]), Value: e.value(state)})
		}
		e.program.Loops = append(e.program.Loops, made)
	}
	e.running = around
}

func (e *emitter) add(v program.Value) int {
	e.program.Values = append(e.program.Values, v)
	return len(e.program.Values) - 1
}

// constant returns the number of a constant in a layout.
func (e *emitter) constant(v *graph.Value, layout []int) int {
	key := fmt.Sprint(v.ID, layout)
	if k, ok := e.index[key]; ok {
		return k
	}
	name, data := v.Name, e.budget.Arrange(v.Const, layout)
	if !op.SameLayout(v.Shape.Max(), layout, op.RowMajor(v.Shape.Rank())) {
		name = fmt.Sprint(name, layout)
	}
	e.index[key] = e.add(program.Value{Name: name, DType: data.DType, Shape: data.Shape, Data: data, Alias: -1})
	return e.index[key]
}

func (e *emitter) call(kernel *graph.Kernel) error {
	w, l, args, err := e.lower(kernel)
	if err != nil {
		return err
	}
	name := taskName(kernel)
	call := program.Call{Name: callName(kernel), Task: e.task(name, w.Merge(), false), Args: args}
	if w.IsOpen() {
		variants, share, err := e.variants(w, l, name)
		if err != nil {
			return err
		}
		call.Variants = variants
		e.program.Tasks[call.Task].Executions += share
	} else if len(e.program.Extents) > 0 {
		e.program.Tasks[call.Task].Executions++
	}
	e.program.Calls = append(e.program.Calls, call)
	return nil
}

// task counts a kernel's task, and adds it if it is new.
func (e *emitter) task(name string, w *expr.Workload, untuned bool) int {
	digest := w.Digest()
	task, ok := e.tasks[digest]
	if !ok {
		task = len(e.program.Tasks)
		e.tasks[digest] = task
		e.program.Tasks = append(e.program.Tasks, program.Task{Workload: w, Name: name, Flop: w.Mean().Flop, Untuned: untuned})
	}
	e.program.Tasks[task].Count++
	e.program.Tasks[task].Untuned = e.program.Tasks[task].Untuned && untuned
	return task
}

// lower returns the kernel's workload, before axes are merged, with its lowering, and the values of its arguments.
func (e *emitter) lower(kernel *graph.Kernel) (w *expr.Workload, l *op.Lowering, args []int, err error) {
	defer extent.Catch(&err)
	e.budget.For(kernel.Anchor.Name, kernel.Anchor.Op)
	l = op.NewLowering(e.budget)
	values := map[int]*graph.Value{}
	computed := map[*graph.Value]op.Operand{}
	var outputs []*expr.Tensor
	for _, n := range kernel.Nodes {
		in := make([]op.Operand, len(n.Operands))
		for k, v := range n.Operands {
			if v == nil {
				continue
			}
			values[v.ID] = v
			o, ok := computed[v]
			switch {
			case ok:
				in[k] = o
			case v.Const != nil:
				in[k] = l.Constant(v.ID, v.Value)
				if v.Layout != nil {
					in[k].Layout = v.Layout
				}
			default:
				in[k] = l.Input(v.ID, v.Name, op.Type{DType: v.InMemory(), Shape: v.Shape}, v.Layout)
				in[k].Tensor.Strides = layout.ArgumentStrides(v)
			}
			in[k].DType = v.DType
		}
		out, err := op.Lower(l, n.Node, in)
		if err != nil {
			return nil, nil, nil, err
		}
		switch {
		case slices.Contains(kernel.Stored, n.Result):
			out = store(l, out, n.Result)
			outputs = append(outputs, out.Tensor)
		case slices.Contains(kernel.Prologue, n.Result):
			out = store(l, out, n.Result)
		}
		computed[n.Result] = out
	}
	if w, err = expr.NewWorkload(outputs); err != nil {
		return nil, nil, nil, err
	}
	return w, l, e.args(w, l, values, kernel.Stored), nil
}

// store adds the stage that computes a result in the memory layout of its value; later operators of the kernel read
// it from there.
func store(l *op.Lowering, o op.Operand, v *graph.Value) op.Operand {
	t := l.Store(o, v.InMemory(), v.Layout)
	t.Strides = layout.ArgumentStrides(v)
	return op.Operand{Type: v.Type, Layout: v.Layout, Tensor: t}
}

func (e *emitter) args(w *expr.Workload, l *op.Lowering, values map[int]*graph.Value, stored []*graph.Value) []int {
	var args []int
	for _, t := range w.Inputs {
		switch s := l.Args[t].Symbol; {
		case s == nil:
			args = append(args, e.value(values[l.Args[t].ID]))
		case s.Source != nil:
			args = append(args, e.value(s.Source.(*graph.Value)))
		default:
			args = append(args, e.program.Extents[e.symbols[s]].Value)
		}
	}
	for _, t := range w.Constants {
		if made := l.Args[t].Made; made != nil {
			args = append(args, e.add(program.Value{Name: "constant", DType: made.DType, Shape: made.Shape, Data: made, Alias: -1}))
			continue
		}
		args = append(args, e.constant(values[l.Args[t].ID], l.Args[t].Layout))
	}
	for _, v := range stored {
		args = append(args, e.value(v))
	}
	return args
}
