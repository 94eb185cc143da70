package op

import (
	"errors"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// The control nodes of a loop. Operand 1 of each is the number of iterations. Those that end the loop list the next
// values of all states from operand 2 on.
const (
	// LoopState has the value of a state in an iteration. Operand 0 is the value before the loop.
	LoopState = "loop state"
	// LoopEnd has the value of a state after the loop. Operand 0 is its next value.
	LoopEnd = "loop end"
	// LoopStack joins what the iterations compute along axis 0. Operand 0 is the part of one iteration.
	LoopStack = "loop stack"
)

var loopDefs = []Def{
	{Name: LoopState, Internal: true, Kind: Control, MinIn: 2, MaxIn: 2, Infer: inferFirst, Layout: rowMajorResult},
	{Name: LoopEnd, Internal: true, Kind: Control, MinIn: 2, MaxIn: -1, Infer: inferFirst, Layout: rowMajorResult},
	{
		Name: LoopStack, Internal: true, Kind: Control, MinIn: 2, MaxIn: -1, Layout: rowMajorResult,
		Infer: func(n *Node) (Type, error) { return n.Out, nil },
	},
}

func inferFirst(n *Node) (Type, error) { return n.In[0].Type, nil }

// Loop describes a loop that executions run: the states of an iteration are computed from those before it.
type Loop struct {
	// Name is that of the model's node.
	Name string
	// Count is the number of iterations. If While is set, fewer run: state 0 is a bool, and the first iteration in
	// which it is false does not run.
	Count extent.Extent
	While bool
	// Init holds the states before the loop.
	Init []*Value
	// Body adds the nodes of one iteration. Its states have the types of Init, and so must the next ones.
	Body func(step extent.Extent, states []*Value) (Iteration, error)
}

// Iteration is what one iteration of a loop computes.
type Iteration struct {
	Next []*Value
	// Parts are the iteration's parts of stacked results: each has extent 1 on axis 0 and becomes element At of the
	// result, which has Count elements.
	Parts []*Value
	At    []extent.Extent
}

// maxUnrolled limits the iterations of loops that are unrolled although executions could run them: short ones are
// faster so, since the numbers of their iterations are known.
const maxUnrolled = 4

// maxIterations limits the iterations of a loop whose number is known.
const maxIterations = 1 << 24

// loopOf adds a loop and returns its states after the last iteration and the stacked parts. ok is false if it must be
// unrolled: it is short, or its states change their types. Loops of open or computed counts cannot be.
func (e *expansion) loopOf(l Loop) (after, stacked []*Value, ok bool) {
	count, isConst := l.Count.Const()
	if isConst && !l.While && count > maxIterations {
		e.fail("%d iterations are more than %d", count, int64(maxIterations))
	}
	if isConst && !l.While && (count <= maxUnrolled || !e.RunsLoops()) {
		return nil, nil, false
	}
	if !e.RunsLoops() {
		e.fail("a number of iterations that is known in an execution only is not supported by this target")
	}
	body := l.Body
	l.Name = e.node.Name
	l.Body = func(step extent.Extent, states []*Value) (made Iteration, err error) {
		defer extent.Catch(&err)
		defer Catch(&err)
		return body(step, states)
	}
	after, stacked, err := e.Loop(l)
	switch {
	case err == nil:
		return after, stacked, true
	case !isConst && !errors.Is(err, errComputedCondition):
		e.fail("a loop of %v iterations: %w", l.Count, err)
	}
	return nil, nil, false
}

// part returns a value with a leading axis of extent 1, as a part of a stacked result.
func (e *expansion) part(v *Value) *Value {
	return e.op(Unsqueeze, nil, v, e.ints(0))
}

// isTrue reports whether a value is the constant true.
func isTrue(v *Value) bool {
	return v != nil && v.Const != nil && v.DType == array.Bool && v.Const.Len() == 1 && v.Const.Int(0) != 0
}
