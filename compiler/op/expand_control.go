package op

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// controlDefs execute control flow while the model is read.
var controlDefs = []Def{
	def("If", 1, 1, (*expansion).branch),
	def("Loop", 0, -1, (*expansion).loop), // the first two inputs are optional
	def("Scan", 0, -1, (*expansion).scan), // input 0 of operator set 8 is optional
}

// body adds the nodes of a graph attribute and returns its outputs.
func (e *expansion) body(g *onnx.Graph, in []*Item) []*Item {
	if e.failed() {
		return nil
	}
	out, err := e.Body(g, in)
	if err != nil {
		e.fail("%w", err)
		return nil
	}
	return out
}

// truth returns the value of a condition; known is false if it is computed from data.
func (e *expansion) truth(v *Value) (is, known bool) {
	if v == nil || e.failed() {
		return true, true
	}
	if v.DType != array.Bool || !v.Shape.Elements().Is(1) {
		e.fail("condition %v is not a bool", v.Type)
		return false, true
	}
	if v.Const == nil {
		return false, false
	}
	return v.Const.Int(0) != 0, true
}

// branch expands If: to the selected branch or, if the condition is computed from data, to a choice between the
// results of both.
func (e *expansion) branch() []*Item {
	cond := e.tensor(0)
	is, known := e.truth(cond)
	then, otherwise := e.node.Graph("then_branch"), e.node.Graph("else_branch")
	switch {
	case e.failed():
		return nil
	case known && is:
		return e.body(then, nil)
	case known:
		return e.body(otherwise, nil)
	}
	cond = e.reshape(cond, extent.Fixed())
	if e.failed() {
		return nil
	}
	a, wrong := e.Branch(then, cond, true)
	b, wrongToo := e.Branch(otherwise, cond, false)
	switch {
	case wrong != nil && wrongToo != nil:
		e.fail("neither branch fits: %w; %w", wrong, wrongToo)
		return nil
	case wrong != nil:
		return e.only(b, cond, false, "then_branch", wrong)
	case wrongToo != nil:
		return e.only(a, cond, true, "else_branch", wrongToo)
	case len(a) != len(b):
		e.fail("the branches have %d and %d outputs", len(a), len(b))
		return nil
	}
	outs := make([]*Item, len(a))
	for k := range outs {
		x, y := a[k].Tensor, b[k].Tensor
		if x == nil || y == nil || x.DType != y.DType || !x.Shape.Equal(y.Shape) {
			e.fail("the condition is computed from data, and output %d is not a tensor of the same type in both branches: "+
				"fix the input that decides it, as by --set NAME=VALUE", k)
			return nil
		}
		outs[k] = tensorItem(e.op(Where, nil, cond, x, y))
	}
	return outs
}

// only returns the results of one branch. The other one cannot be compiled; executions that would take it fail.
func (e *expansion) only(results []*Item, cond *Value, is bool, other string, wrong error) []*Item {
	why := fmt.Sprintf("node %q (If) takes its %s, which does not fit the shapes that the model was compiled for: %v", e.node.Name, other, wrong)
	if err := e.Require(cond, is, why); err != nil {
		e.fail("%w", err)
	}
	return results
}

// loop unrolls Loop. The number of iterations must be known when the model is read.
func (e *expansion) loop() []*Item {
	g := e.node.Graph("body")
	trips, endless := e.tripCount()
	cond := e.tensor(1)
	if e.failed() {
		return nil
	}
	carried := slices.Clone(e.in[min(2, len(e.in)):])
	if slices.Contains(carried, nil) {
		e.fail("a loop-carried value is missing")
		return nil
	}
	scans := newScans(len(g.Outputs) - 1 - len(carried))
	if scans == nil {
		e.fail("graph %q has %d outputs, want at least %d", g.Name, len(g.Outputs), 1+len(carried))
		return nil
	}
	for t := int64(0); endless || t < trips; t++ {
		is, known := e.truth(cond)
		if !known {
			e.fail("the loop condition is computed from data: loops must have a known number of iterations")
		}
		if e.failed() || !is {
			break
		}
		if cond == nil {
			cond = e.truthOf(true)
		}
		number := e.known(array.FromInt64([]int64{t}))
		out := e.body(g, append([]*Item{tensorItem(number), tensorItem(cond)}, carried...))
		if e.Budget().Node(); e.failed() { // charges iterations of bodies without nodes, too
			return nil
		}
		if cond = out[0].Tensor; cond == nil {
			e.fail("the condition is not a tensor")
			return nil
		}
		carried = out[1 : 1+len(carried)]
		scans.add(out[1+len(carried):])
	}
	infos := g.Outputs[1+len(carried):]
	return append(slices.Clone(carried), e.stack(scans, infos, 0)...)
}

// tripCount returns the limit on iterations; endless is true if none exists.
func (e *expansion) tripCount() (trips int64, endless bool) {
	v := e.tensor(0)
	switch {
	case v == nil:
		return 0, true
	case v.Numbers != nil:
		e.fail("the trip count depends on an open extent: fix it by --shape")
		return 0, false
	case v.Const == nil || v.Const.Len() != 1 || !v.DType.IsInt():
		e.fail("the trip count is not constant: loops must have a known number of iterations")
		return 0, false
	}
	return v.Const.Int(0), false
}

func (e *expansion) truthOf(v bool) *Value {
	return e.scalar(array.Bool, map[bool]float64{true: 1}[v])
}
