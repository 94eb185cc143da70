package op

import (
	"errors"
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
	e.check()
	return Get(e.Body(g, in))
}

// truth returns the value of a condition; known is false if it is computed from data.
func (e *expansion) truth(v *Value) (is, known bool) {
	if v == nil || e.failed() {
		return true, true
	}
	if v.DType != array.Bool || !v.Shape.Elements().Is(1) {
		e.fail("condition %v is not a bool", v.Type)
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
	e.check()
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

// loop iterates the body of Loop. The number of iterations may be computed, and the body may compute whether another
// one follows; unrolled loops know both when the model is read.
func (e *expansion) loop() []*Item {
	g := e.node.Graph("body")
	cond, carried := e.tensor(1), slices.Clone(e.in[min(2, len(e.in)):])
	e.check()
	if slices.Contains(carried, nil) {
		e.fail("a loop-carried value is missing")
	}
	if len(g.Outputs) < 1+len(carried) {
		e.fail("graph %q has %d outputs, want at least %d", g.Name, len(g.Outputs), 1+len(carried))
	}
	trips, endless := e.tripCount(len(g.Outputs) > 1+len(carried))
	looped := func(isComputed bool) []*Item { return e.loopedBody(g, cond, carried, trips, isComputed || endless) }
	is, known := e.truth(cond)
	if !known || is {
		if outs := looped(!known); outs != nil {
			return outs
		}
	}
	count, isConst := trips.Const()
	if !isConst {
		e.fail("the trip count %v is not constant, and the body cannot be repeated", trips)
	}
	scans := newScans(len(g.Outputs) - 1 - len(carried))
	going, states := cond, carried
	for t := int64(0); endless || t < count; t++ {
		is, known := e.truth(going)
		if !known {
			if outs := looped(true); outs != nil {
				return outs
			}
			e.fail("the loop condition is computed from data: loops must have a known number of iterations")
		}
		if e.failed() || !is {
			break
		}
		if going == nil {
			going = e.truthOf(true)
		}
		number := e.known(array.FromInt64([]int64{t}))
		out := e.body(g, append([]*Item{tensorItem(number), tensorItem(going)}, states...))
		if e.Budget().Node(); e.failed() { // charges iterations of bodies without nodes, too
			return nil
		}
		if going = out[0].Tensor; going == nil {
			e.fail("the condition is not a tensor")
		}
		states = out[1 : 1+len(carried)]
		scans.add(out[1+len(carried):])
	}
	infos := g.Outputs[1+len(carried):]
	return append(slices.Clone(states), e.stack(scans, infos, 0)...)
}

// errComputedCondition is returned by a body that computes whether another iteration follows.
var errComputedCondition = errors.New("the loop condition is computed from data")

// errEndless is returned by a body whose condition never changes.
var errEndless = errors.New("the loop condition never changes")

// loopedBody adds the iterations as a loop; nil if they must be unrolled. If the body computes its condition, that is
// a state; isComputed is set if this is known.
func (e *expansion) loopedBody(g *onnx.Graph, cond *Value, carried []*Item, trips extent.Extent, isComputed bool) []*Item {
	init := tensorsOf(carried)
	if slices.Contains(init, nil) {
		return nil
	}
	if cond == nil {
		cond = e.truthOf(true)
	}
	body := func(step extent.Extent, going *Value, states []*Value) (again *Value, made Iteration) {
		out := e.body(g, append([]*Item{tensorItem(e.reshape(e.count(step), extent.Fixed())), tensorItem(going)}, itemsOf(states)...))
		values := e.tensorsIn(out)
		made.Next = values[1 : 1+len(carried)]
		for _, v := range values[1+len(carried):] {
			made.Parts, made.At = append(made.Parts, e.part(v)), append(made.At, step)
		}
		return values[0], made
	}
	if !isComputed {
		after, stacked, ok := e.loopOf(Loop{Count: trips, Init: init, Body: func(step extent.Extent, states []*Value) (Iteration, error) {
			again, made := body(step, cond, states)
			if !isTrue(again) {
				isComputed = true
				return made, errComputedCondition
			}
			return made, nil
		}})
		if ok {
			return append(itemsOf(after), itemsOf(stacked)...)
		}
	}
	if !isComputed || len(g.Outputs) > 1+len(carried) {
		return nil
	}
	init = append([]*Value{e.reshape(cond, extent.Fixed())}, init...)
	after, _, ok := e.loopOf(Loop{Count: trips, While: true, Init: init, Body: func(step extent.Extent, states []*Value) (Iteration, error) {
		again, made := body(step, states[0], states[1:])
		if isTrue(again) || again == states[0] {
			return made, errEndless
		}
		made.Next = append([]*Value{e.reshape(again, extent.Fixed())}, made.Next...)
		return made, nil
	}})
	if !ok {
		return nil
	}
	return itemsOf(after[1:])
}

// farIteration bounds computed numbers of iterations.
const farIteration = 1 << 40

// tripCount returns the limit on iterations; endless is true if none exists. Stacked results need memory for all.
func (e *expansion) tripCount(stacks bool) (trips extent.Extent, endless bool) {
	v := e.tensor(0)
	switch {
	case v == nil:
		return extent.Of(farIteration), true
	case !v.DType.IsInt() || !v.Shape.Elements().Is(1):
		e.fail("the trip count %v is not an integer", v.Type)
	case v.Const != nil:
		return extent.Of(max(0, v.Const.Int(0))), false
	case v.Numbers != nil:
		return v.Numbers[0].Of.Most(extent.Of(0)), false
	case stacks:
		e.fail("the trip count is computed from data, and stacked results need one with a bound")
	}
	count := e.op("Max", nil, e.cast(array.Int64, e.reshape(v, extent.Fixed())), e.scalar(array.Int64, 0))
	return e.Counted(count, farIteration), false
}

func (e *expansion) truthOf(v bool) *Value {
	return e.scalar(array.Bool, map[bool]float64{true: 1}[v])
}
