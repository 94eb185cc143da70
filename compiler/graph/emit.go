package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/op"
	"github.com/tilth-dev/tilth/compiler/program"
)

// emitter turns groups into calls.
type emitter struct {
	program *program.Program
	// budget pays for constants that are arranged anew.
	budget *op.Budget
	// index finds values in the program: by value, and constants by value and layout.
	index map[string]int
	tasks map[string]int
}

func emit(g *graph, groups []*group) (*program.Program, error) {
	e := &emitter{program: &program.Program{Name: g.name}, budget: g.budget, index: map[string]int{}, tasks: map[string]int{}}
	for _, v := range g.inputs {
		e.program.Inputs = append(e.program.Inputs, e.value(v))
	}
	for _, grp := range groups {
		if err := e.call(grp); err != nil {
			return nil, fmt.Errorf("kernel of node %q (%s): %w", grp.anchor.Name, grp.anchor.Op, err)
		}
	}
	for _, v := range g.outputs {
		e.program.Outputs = append(e.program.Outputs, e.value(v))
	}
	return e.program, nil
}

// value is the index of a value that arrives or is computed; one that lies in another's memory is an alias of that.
func (e *emitter) value(v *value) int {
	if v.Const != nil {
		return e.constant(v, op.RowMajor(len(v.Shape)))
	}
	key := fmt.Sprint(v.id)
	if k, ok := e.index[key]; ok {
		return k
	}
	made := program.Value{Name: v.name, DType: v.DType, Shape: physical(v), Alias: -1}
	if p, _ := placeOf(v); p.root != v {
		made.Alias, made.Offset = e.value(p.root), p.offset
		if !p.isDense(made.Shape) {
			made.Strides = p.strides
		}
	}
	e.index[key] = e.add(made)
	return e.index[key]
}

func (e *emitter) add(v program.Value) int {
	e.program.Values = append(e.program.Values, v)
	return len(e.program.Values) - 1
}

// constant is the index of a constant arranged in a layout.
func (e *emitter) constant(v *value, layout []int) int {
	key := fmt.Sprint(v.id, layout)
	if k, ok := e.index[key]; ok {
		return k
	}
	shape := op.Physical(v.Shape, layout)
	rows := op.RowMajor(len(v.Shape))
	name, data := v.name, &array.Array{DType: v.DType, Shape: shape, Data: v.Const.Data}
	if !op.SameLayout(v.Shape, layout, rows) {
		e.budget.Bytes(int64(len(v.Const.Data)))
		data = op.Arrange(v.Const, layout)
		name = fmt.Sprint(name, layout)
	}
	e.index[key] = e.add(program.Value{Name: name, DType: v.DType, Shape: shape, Data: data, Alias: -1})
	return e.index[key]
}

func (e *emitter) call(grp *group) error {
	w, args, err := e.lower(grp)
	if err != nil {
		return err
	}
	digest := w.Digest()
	task, ok := e.tasks[digest]
	if !ok {
		task = len(e.program.Tasks)
		e.tasks[digest] = task
		e.program.Tasks = append(e.program.Tasks, program.Task{Workload: w, Name: taskName(grp), Flop: w.Flop()})
	}
	e.program.Tasks[task].Count++
	e.program.Calls = append(e.program.Calls, program.Call{Name: callName(grp), Task: task, Args: args})
	return nil
}

// lower makes the group's workload and the values of its arguments.
func (e *emitter) lower(grp *group) (*expr.Workload, []int, error) {
	e.budget.For(grp.anchor.Name, grp.anchor.Op)
	l := op.NewLowering(e.budget)
	values := map[int]*value{}
	computed := map[*value]op.Operand{}
	var outputs []*expr.Tensor
	for _, n := range grp.nodes {
		in := make([]op.Operand, len(n.in))
		for k, v := range n.in {
			if v == nil {
				continue
			}
			values[v.id] = v
			o, ok := computed[v]
			switch {
			case ok:
				in[k] = o
			case v.Const != nil:
				in[k] = l.Constant(v.id, v.Const)
			default:
				in[k] = l.Input(v.id, v.name, v.Type, v.layout)
				in[k].Tensor.Strides = argumentStrides(v)
			}
		}
		out, err := op.Lower(l, n.Node, in)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case slices.Contains(grp.stored, n.out):
			out = store(l, out, n.out)
			outputs = append(outputs, out.Tensor)
		case slices.Contains(grp.prologue, n.out):
			out = store(l, out, n.out)
		}
		computed[n.out] = out
	}
	w, err := expr.NewWorkload(outputs)
	if err != nil {
		return nil, nil, err
	}
	return w.Merge(), e.args(w, l, values, grp.stored), nil
}

// store is the stage that computes a result as its value lies in memory; what follows in the kernel reads it there.
func store(l *op.Lowering, o op.Operand, v *value) op.Operand {
	t := l.Store(o, v.layout)
	t.Strides = argumentStrides(v)
	return op.Operand{Type: v.Type, Layout: v.layout, Tensor: t}
}

func (e *emitter) args(w *expr.Workload, l *op.Lowering, values map[int]*value, stored []*value) []int {
	var args []int
	for _, t := range w.Inputs {
		args = append(args, e.value(values[l.Args[t].ID]))
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

// taskName is for example "conv2d+add+relu 1x56x56x64 k3x3 -> 64": operators, operand in memory, details, channels
// out.
func taskName(grp *group) string {
	var labels []string
	for _, n := range grp.nodes {
		labels = append(labels, label(n))
	}
	n := grp.anchor
	parts := []string{strings.Join(labels, "+")}
	if v := firstInput(n); v != nil {
		parts = append(parts, dims(op.Physical(v.Shape, v.layout)))
	}
	if detail := n.Def().Detail; detail != nil {
		if text := detail(n.Node); text != "" {
			parts = append(parts, text)
		}
	}
	if n.Def().Kind == op.Reduction && len(n.Out.Shape) > 0 {
		parts = append(parts, "->", dims(outExtent(n)))
	}
	return strings.Join(parts, " ")
}

// label is the name of an operator in a task's name.
func label(n *node) string {
	switch d := n.Def(); {
	case d.Label == "":
		return strings.ToLower(n.Op)
	case d.Spatial:
		return fmt.Sprintf("%s%dd", d.Label, len(n.Out.Shape)-2)
	default:
		return d.Label
	}
}

// firstInput is the first operand that is not a constant.
func firstInput(n *node) *value {
	for _, v := range n.in {
		if v != nil && v.Const == nil {
			return v
		}
	}
	return nil
}

// outExtent is the number of channels of an image's or a dense layer's result, the whole shape of others.
func outExtent(n *node) []int64 {
	if n.Def().ChannelsOut {
		return n.Out.Shape[1:2]
	}
	return op.Physical(n.Out.Shape, n.out.layout)
}

func dims(shape []int64) string {
	if len(shape) == 0 {
		return "scalar"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", "x"), "[]")
}

func callName(grp *group) string {
	var names []string
	for _, n := range grp.nodes {
		if !slices.Contains(names, n.Name) {
			names = append(names, n.Name)
		}
	}
	return strings.Join(names, "+")
}
