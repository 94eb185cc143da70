package vta

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// dim is a dimension of a copy: iterations, distances in elements, and the restriction to those within a tensor.
type dim struct {
	iterations, place, memory int64
	span
}

// load returns the instruction that fills a buffer from memory: what a nest that copies means. Packed constants are
// padded with zeros, so that all elements are valid.
func (n nest) load(packed bool) *ir.Call {
	from, valid, ok := schedule.CopyOf(n.Store.Value)
	if packed {
		valid = nil
	}
	if !ok || n.Guard != nil {
		fail("buffer %s is not a copy", n.Store.Buffer.Tensor.Name)
	}
	to, source := n.access(n.Store.Buffer.Tensor, n.Store.Index), n.access(from.Tensor, from.Index[0])
	i := &ir.Instruction{Name: "load", Params: []ir.Param{operand("to", ir.Write), {Name: "from", Use: ir.Read, Form: ir.Address}}}
	args := []ir.Arg{ir.At(n.Store.Buffer, to.first), ir.In(from.Tensor, source.first)}
	return copied(i, args, n.dims(valid, to, source))
}

// save returns the instruction that copies a buffer, which holds the results of the nest densely, to memory.
func (n nest) save(from *ir.Buffer) *ir.Call {
	to := n.access(n.Store.Buffer.Tensor, n.Store.Index)
	place := access{tensor: from.Tensor, steps: n.dense()}
	i := &ir.Instruction{Name: "store", Params: []ir.Param{operand("from", ir.Read), {Name: "to", Use: ir.Write, Form: ir.Address}}}
	return copied(i, []ir.Arg{ir.All(from), ir.At(n.Store.Buffer, to.first)}, n.dims(n.Guard, place, to))
}

// dense returns the steps of a buffer that has an element for each iteration, in order.
func (n nest) dense() []int64 {
	steps, elements := make([]int64, len(n.Loops)), int64(1)
	for k, l := range slices.Backward(n.Loops) {
		steps[k] = elements
		elements *= l.Extent
	}
	return steps
}

// dims returns the dimensions of a copy of the elements for which a condition holds.
func (n nest) dims(cond expr.Expr, place, memory access) []dim {
	conditions := n.conditions(cond)
	dims := make([]dim, len(n.Loops))
	for k, l := range n.Loops {
		dims[k] = dim{iterations: l.Extent, place: place.steps[k], memory: memory.steps[k]}
	}
	// Neighbours that advance everything like one loop are one, also in the conditions.
	for k := len(dims) - 1; k > 0; k-- {
		inner := dims[k].iterations
		if !dims[k].continues(dims[k-1]) || slices.ContainsFunc(conditions, func(c condition) bool { return c.steps[k-1] != c.steps[k]*inner }) {
			continue
		}
		dims[k-1] = dim{iterations: dims[k-1].iterations * inner, place: dims[k].place, memory: dims[k].memory}
		dims = slices.Delete(dims, k, k+1)
		for i, c := range conditions {
			conditions[i].steps = slices.Delete(slices.Clone(c.steps), k-1, k)
		}
	}
	for _, c := range conditions {
		c.restrict(dims)
	}
	if dims = joined(dims); len(dims) > maxLoops {
		fail("a copy has %d dimensions", len(dims))
	}
	return dims
}

// continues reports whether a dimension's iterations follow one another across those of the outer one.
func (d dim) continues(outer dim) bool {
	return outer.place == d.place*d.iterations && outer.memory == d.memory*d.iterations
}

// joined joins unrestricted dimensions to restricted ones outside them where elements are contiguous.
func joined(dims []dim) (list []dim) {
	for _, d := range dims {
		last := len(list) - 1
		if last < 0 || d.span != (span{}) || !d.continues(list[last]) {
			list = append(list, d)
			continue
		}
		scale := func(e expr.Expr) expr.Expr {
			if e == nil {
				return nil
			}
			return expr.MulE(e, expr.I(d.iterations))
		}
		o := list[last]
		list[last] = dim{o.iterations * d.iterations, d.place, d.memory, span{scale(o.first), scale(o.end)}}
	}
	return list
}

// copied returns the call of a copy.
func copied(i *ir.Instruction, args []ir.Arg, dims []dim) *ir.Call {
	bytes := args[0].Tensor.DType.Bytes()
	var text []string
	for _, d := range dims {
		first, end := d.first, d.end
		if first == nil {
			first = expr.I(0)
		}
		if end == nil {
			end = expr.I(d.iterations)
		}
		i.Params = append(i.Params, ir.Param{Name: "first", Form: ir.Number}, ir.Param{Name: "end", Form: ir.Number})
		args = append(args, ir.Of(first), ir.Of(end))
		text = append(text, fmt.Sprintf("{%d, %d, %d, %%s, %%s}", d.iterations, d.place*bytes, d.memory*bytes))
	}
	i.Text = fmt.Sprintf("vta_%s(vta, vta_at(vta, %%s), %%s, %d, %d, (struct vta_dim[]){%s});", i.Name, bytes, len(dims), strings.Join(text, ", "))
	return ir.Exec(i, args...)
}
