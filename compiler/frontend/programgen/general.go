package programgen

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// general derives from the workloads of a kernel in the samples the workload for any extents.
type general struct {
	*opener
	samples []sampled
	// made maps stages of the first sample to those of the general workload, vars their variables.
	made map[*expr.Tensor]*expr.Tensor
	vars map[*expr.Var]*expr.Var
	// number maps tensors to their numbers in the samples.
	number map[*expr.Tensor]int
}

// sampled is a workload with numbered tensors and variables, for comparison with others.
type sampled struct {
	w       *expr.Workload
	list    []*expr.Tensor
	tensors map[*expr.Tensor]int
	vars    map[*expr.Var]int
}

func newSampled(w *expr.Workload) sampled {
	s := sampled{w: w, tensors: map[*expr.Tensor]int{}, vars: map[*expr.Var]int{}}
	for _, list := range [][]*expr.Tensor{w.Inputs, w.Constants, w.Stages} {
		for _, t := range list {
			s.tensors[t] = len(s.list)
			s.list = append(s.list, t)
			for _, v := range t.Axes {
				s.vars[v] = len(s.vars)
			}
			for _, v := range t.Reduce {
				s.vars[v] = len(s.vars)
			}
		}
	}
	return s
}

// errOther returns the error for samples without a common form.
func (g *general) errOther() error {
	return fmt.Errorf("it is computed differently with %s and %s: fix an extent by --shape, or give it other bounds", g.say(0), g.say(1))
}

// workload returns the general workload.
func (g *general) workload() (*expr.Workload, error) {
	g.made, g.vars, g.number = map[*expr.Tensor]*expr.Tensor{}, map[*expr.Var]*expr.Var{}, maps.Clone(g.samples[0].tensors)
	first := g.samples[0].w
	for _, s := range g.samples[1:] {
		if len(s.tensors) != len(g.samples[0].tensors) || len(s.vars) != len(g.samples[0].vars) || len(s.w.Stages) != len(first.Stages) || len(s.w.Outputs) != len(first.Outputs) {
			return nil, g.errOther()
		}
	}
	for k := range first.Stages {
		if err := g.stage(k); err != nil {
			return nil, err
		}
	}
	var outputs []*expr.Tensor
	for _, t := range first.Outputs {
		outputs = append(outputs, g.made[t])
	}
	return expr.NewWorkload(outputs)
}

// known maps a tensor of the first sample to the general workload.
func (g *general) known(t *expr.Tensor) *expr.Tensor {
	if made := g.made[t]; made != nil {
		return made
	}
	return t
}

func (g *general) stage(k int) error {
	t := g.samples[0].w.Stages[k]
	made := *t
	var axes, reduce [][]*expr.Var
	var bodies []expr.Expr
	for _, s := range g.samples {
		x := s.w.Stages[k]
		if x.Combiner != t.Combiner || x.DType != t.DType || len(x.Axes) != len(t.Axes) || len(x.Reduce) != len(t.Reduce) {
			return g.errOther()
		}
		axes, reduce, bodies = append(axes, x.Axes), append(reduce, x.Reduce), append(bodies, x.Body)
	}
	var err error
	if made.Axes, err = g.variables(axes); err != nil {
		return err
	}
	if made.Reduce, err = g.variables(reduce); err != nil {
		return err
	}
	if made.Body, err = g.expr(bodies); err != nil {
		return err
	}
	g.made[t], g.number[&made] = &made, g.number[t]
	return g.checkReads(made.Body)
}

// variables returns axes, with limits where their extents vary.
func (g *general) variables(lists [][]*expr.Var) ([]*expr.Var, error) {
	var made []*expr.Var
	for k, v := range lists[0] {
		extents := make([]int64, len(lists))
		for s, list := range lists {
			extents[s] = list[k].Extent
		}
		x := *v
		if varies(extents) {
			f, ok := g.fit(extents)
			if !ok {
				return nil, fmt.Errorf("it has %d elements along an axis with %s and %d with %s, which is not a multiple of one extent",
					extents[0], g.say(0), extents[1], g.say(1))
			}
			if f.Shrinks() {
				return nil, fmt.Errorf("it has %d elements along an axis with %s and %d with %s, which are more with less of an extent: memory is laid out for the most: fix an extent by --shape",
					extents[0], g.say(0), slices.Max(extents), g.say(slices.Index(extents, slices.Max(extents))))
			}
			x.Limit = f.Expr(g.counts)
		}
		g.vars[v] = &x
		made = append(made, &x)
	}
	return made, nil
}

// errRead returns the error for a kernel that reads out of bounds for some extents.
func (g *general) errRead(size int64, at []int64) error {
	return fmt.Errorf("it reads beyond the %d elements of an axis where %s: give that other bounds, or fix it by --shape", size, Values(g.extents, at))
}

// checkReads checks that the elements an expression reads along open axes exist for the smallest and largest value
// of each extent, and thus for all values. It does not check the sides of a selection, which its condition guards.
func (g *general) checkReads(e expr.Expr) (err error) {
	switch n := e.(type) {
	case *expr.Select:
		return g.checkReads(n.Cond)
	case *expr.Load:
		for d, index := range n.Index {
			if err := g.checkIndex(n.Tensor, d, index); err != nil {
				return err
			}
		}
	}
	expr.Children(e, func(x expr.Expr) { err = errors.Join(err, g.checkReads(x)) })
	return err
}

// isOpen reports whether an index depends on extents, or on axes with limits.
func (g *general) isOpen(index expr.Expr) bool {
	open := false
	expr.Walk(index, func(x expr.Expr) {
		switch n := x.(type) {
		case *expr.Var:
			open = open || n.Limit != nil
		case *expr.Load:
			open = open || slices.Contains(g.counts, n.Tensor)
		}
	})
	return open
}

func (g *general) checkIndex(t *expr.Tensor, dim int, index expr.Expr) error {
	sizes := make([]int64, len(g.samples))
	for s := range g.samples {
		sizes[s] = g.samples[s].list[g.number[t]].Shape[dim]
	}
	if !varies(sizes) && !g.isOpen(index) {
		return nil
	}
	size, ok := g.fit(sizes)
	for _, at := range g.corners() {
		if lo, hi := g.between(index, at); !ok || lo < 0 || hi >= size.At(at) {
			return g.errRead(size.At(at), at)
		}
	}
	return nil
}

// expr returns an expression that equals each sample's expression at its extents.
func (g *general) expr(of []expr.Expr) (expr.Expr, error) {
	switch first := of[0].(type) {
	case *expr.Int:
		return g.integer(first, of)
	case *expr.Float:
		return g.float(first, of)
	case *expr.Var:
		for s, e := range of {
			v, isVar := e.(*expr.Var)
			if !isVar || g.samples[s].vars[v] != g.samples[0].vars[first] {
				return nil, g.errOther()
			}
		}
		return g.vars[first], nil
	}
	if err := g.sameNode(of); err != nil {
		return nil, err
	}
	operands := make([][]expr.Expr, len(of))
	for s, e := range of {
		expr.Children(e, func(x expr.Expr) { operands[s] = append(operands[s], x) })
	}
	var err error
	next := 0
	e := expr.Map(of[0], func(x expr.Expr) expr.Expr {
		column := make([]expr.Expr, len(of))
		for s := range of {
			column[s] = operands[s][next]
		}
		next++
		made, wrong := g.expr(column)
		if wrong != nil {
			err = wrong
			return x
		}
		return made
	})
	if l, isLoad := e.(*expr.Load); isLoad {
		l.Tensor = g.known(l.Tensor)
	}
	return e, err
}

// sameNode checks that expressions agree except for their operands.
func (g *general) sameNode(of []expr.Expr) error {
	for s, e := range of {
		same := reflect.TypeOf(e) == reflect.TypeOf(of[0]) && e.DType() == of[0].DType()
		switch n := e.(type) {
		case *expr.Load:
			first, isLoad := of[0].(*expr.Load)
			same = same && isLoad && g.samples[s].tensors[n.Tensor] == g.samples[0].tensors[first.Tensor]
		case *expr.Binary:
			first, isBinary := of[0].(*expr.Binary)
			same = same && isBinary && n.Op == first.Op
		case *expr.Unary:
			first, isUnary := of[0].(*expr.Unary)
			same = same && isUnary && n.Op == first.Op
		}
		if !same {
			return g.errOther()
		}
	}
	return nil
}

// integer returns a number that may depend on extents.
func (g *general) integer(first *expr.Int, of []expr.Expr) (expr.Expr, error) {
	values := make([]int64, len(of))
	for s, e := range of {
		n, isInt := e.(*expr.Int)
		if !isInt || n.Type != first.Type {
			return nil, g.errOther()
		}
		values[s] = n.Value
	}
	if !varies(values) {
		return first, nil
	}
	f, ok := g.fit(values)
	if !ok {
		return nil, fmt.Errorf("it computes with %d with %s and with %d with %s, which is not a multiple of one extent", values[0], g.say(0), values[1], g.say(1))
	}
	return expr.To(first.Type, f.Expr(g.counts)), nil
}

// float returns a number that may be an extent, as in a mean, or its reciprocal.
func (g *general) float(first *expr.Float, of []expr.Expr) (expr.Expr, error) {
	values := make([]float64, len(of))
	for s, e := range of {
		n, isFloat := e.(*expr.Float)
		if !isFloat || n.Type != first.Type {
			return nil, g.errOther()
		}
		values[s] = n.Value
	}
	if !varies(values) {
		return first, nil
	}
	whole, inverse := make([]int64, len(of)), make([]int64, len(of))
	isWhole, isInverse := true, true
	for s, v := range values {
		var w, i bool
		whole[s], inverse[s], w, i = wholeOrInverse(v)
		isWhole, isInverse = isWhole && w, isInverse && i
	}
	if f, ok := g.fit(whole); ok && isWhole {
		return expr.To(first.Type, f.Expr(g.counts)), nil
	}
	if f, ok := g.fit(inverse); ok && isInverse {
		return expr.DivE(expr.F(first.Type, 1), expr.To(first.Type, f.Expr(g.counts))), nil
	}
	return nil, fmt.Errorf("it computes with %v with %s and with %v with %s, which is neither a multiple of an extent nor one divided by it",
		values[0], g.say(0), values[1], g.say(1))
}

// wholeOrInverse returns the integer that equals a float32 number, or whose reciprocal does.
func wholeOrInverse(v float64) (whole, inverse int64, isWhole, isInverse bool) {
	whole, inverse = int64(math.Round(v)), int64(math.Round(1/v))
	return whole, inverse, float64(whole) == v, inverse != 0 && float32(1/float64(inverse)) == float32(v)
}
