package vta

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// nest is a store in loops.
type nest struct{ ir.PerfectNest }

// access is where a nest accesses a buffer: an element, and the distance in elements by which each loop advances.
type access struct {
	tensor *expr.Tensor
	first  expr.Expr
	steps  []int64
}

// access analyses an index, which must be linear in the loops.
func (n nest) access(t *expr.Tensor, index expr.Expr) access {
	first, steps, err := n.linear(index)
	if err != nil {
		fail("%w", err)
	}
	return access{t, first.Expr(), steps}
}

// linear divides an integer into the distance by which each loop advances it, and its first value.
func (n nest) linear(e expr.Expr) (first expr.Linear, steps []int64, err error) {
	first = expr.Linearize(e)
	for _, l := range n.Loops {
		step, ok := first.Coef(l.Var)
		if !ok {
			return first, nil, fmt.Errorf("an index is not linear in the loop over %s", l.Var.Name)
		}
		steps = append(steps, step)
		first = first.Plus(expr.Linearize(l.Var), -step)
	}
	return first, steps, nil
}

// without returns the nest without its last loops.
func (n nest) without(last int) nest {
	n.Loops = n.Loops[:len(n.Loops)-last]
	return n
}

// condition is a comparison with zero: first, advanced by each loop, is positive.
type condition struct {
	first expr.Linear
	steps []int64
}

// conditions divides a conjunction of comparisons; nil is always true.
func (n nest) conditions(cond expr.Expr) []condition {
	if cond == nil {
		return nil
	}
	c, ok := cond.(*expr.Binary)
	if !ok {
		fail("a condition is a %T", cond)
	}
	// a < b, or a <= b, is slack > 0 with slack = b - a, or b - a + 1.
	slack := expr.Linearize(c.B).Plus(expr.Linearize(c.A), -1)
	switch c.Op {
	case expr.And:
		return append(n.conditions(c.A), n.conditions(c.B)...)
	case expr.Le:
		slack.Const++
	case expr.Lt:
	default:
		fail("a condition compares by %v", c.Op)
	}
	first, steps, err := n.linear(slack.Expr())
	if err != nil {
		fail("%w", err)
	}
	return []condition{{first, steps}}
}

// span restricts iterations to those from first on and before end; nil means no restriction.
type span struct{ first, end expr.Expr }

// restrict narrows the span of the only loop of a condition, which must advance it by one.
func (c condition) restrict(dims []dim) {
	only := -1
	for k, step := range c.steps {
		if step == 0 {
			continue
		}
		if only >= 0 || step*step != 1 {
			fail("a condition does not advance by one with a single loop")
		}
		only = k
	}
	if only < 0 {
		fail("a condition does not depend on the loops of a copy")
	}
	s := &dims[only].span
	switch {
	case c.steps[only] < 0 && s.end == nil: // first - i > 0
		s.end = c.first.Expr()
	case c.steps[only] > 0 && s.first == nil: // first + i > 0
		s.first = expr.SubE(expr.I(1), c.first.Expr())
	default:
		fail("several conditions restrict a loop")
	}
}
