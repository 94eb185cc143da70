package programgen

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/op"
	"github.com/tilth-dev/tilth/compiler/program"
)

// variant describes the kernels for extents up to caps, the points at which they are timed, and the share of
// executions that need them.
type variant struct {
	caps   []int64
	points [][]int64
	share  float64
}

// isWithin reports whether the kernels of another variant compute all that those of v do.
func (v variant) isWithin(other variant) bool {
	for k, n := range v.caps {
		if n > other.caps[k] {
			return false
		}
	}
	return true
}

// variantsOf returns the variants for smaller extents in ascending order, and the one for all.
func variantsOf(extents []program.Extent) (smaller []variant, all variant) {
	list := []variant{{share: 1}}
	for _, e := range extents {
		var longer []variant
		for _, before := range list {
			for k, n := range append(slices.Clone(e.Caps), e.Max) {
				longer = append(longer, variant{append(slices.Clone(before.caps), n), append(slices.Clone(before.points), e.Points[k]), before.share / float64(len(e.Points))})
			}
		}
		list = longer
	}
	last := len(list) - 1
	return list[:last], list[last]
}

// variants returns a kernel's tasks for smaller extents in ascending order, and the share of executions that need
// the full one. Without a reduction there is nothing to gain: such a kernel is a single pass over its operands.
func (e *emitter) variants(w *expr.Workload, l *op.Lowering, name string) (list []program.Variant, share float64, err error) {
	if !slices.ContainsFunc(w.Stages, func(t *expr.Tensor) bool { return len(t.Reduce) > 0 }) {
		return nil, 1, nil
	}
	var symbols []*extent.Symbol
	var extents []program.Extent
	for _, t := range w.Inputs {
		if s := l.Args[t].Symbol; s != nil && s.Source == nil {
			symbols, extents = append(symbols, s), append(extents, e.program.Extents[e.symbols[s]])
		}
	}
	smaller, all := variantsOf(extents)
	for k, x := range smaller {
		own, err := e.capped(w, l, symbols, x)
		if err != nil {
			return nil, 0, err
		}
		if own == nil {
			larger := &all
			if n := slices.IndexFunc(smaller[k+1:], x.isWithin); n >= 0 {
				larger = &smaller[k+1+n]
			}
			larger.share += x.share
			continue
		}
		v := program.Variant{Task: e.task(fmt.Sprintf("%s up to %s", name, Values(extents, x.caps)), own.Merge(), !extents[0].CapsGiven)}
		e.program.Tasks[v.Task].Executions += x.share
		for k, n := range x.caps {
			v.Caps = append(v.Caps, program.Cap{Extent: e.symbols[symbols[k]], Max: n})
		}
		list = append(list, v)
	}
	if len(smaller) > 0 && !extents[0].CapsGiven {
		all.share = 1 // only this kernel is tuned, and stands for all executions
	}
	return list, all.share, nil
}

// capped returns the workload for extents of symbols up to caps, with the same arguments in memory; nil if some axis
// has no elements then, which is left to the kernel of a larger variant. An extent whose cap equals its minimum is no
// longer open. Those of other symbols stay: a kernel may read a fixed part of an open axis.
func (e *emitter) capped(w *expr.Workload, l *op.Lowering, symbols []*extent.Symbol, x variant) (*expr.Workload, error) {
	c := &capping{Lowering: l, extents: map[*extent.Symbol]extent.Extent{}, points: map[*extent.Symbol][]int64{}, tensors: map[*expr.Tensor]*expr.Tensor{}, vars: map[*expr.Var]expr.Expr{}}
	var set extent.Set
	for k, s := range symbols {
		if least, _ := s.Units(); least == x.caps[k] {
			c.extents[s] = extent.Of(s.Min)
		} else {
			c.extents[s] = set.Add(&extent.Symbol{Name: s.Name, Min: s.Min, Max: x.caps[k] * s.Step, Step: s.Step})
		}
		c.points[s] = x.points[k]
	}
	for _, s := range slices.SortedFunc(maps.Keys(e.symbols), func(a, b *extent.Symbol) int { return e.symbols[a] - e.symbols[b] }) {
		if !slices.Contains(symbols, s) {
			c.extents[s] = set.Add(&extent.Symbol{Name: s.Name, Min: s.Min, Max: s.Max, Step: s.Step})
		}
	}
	var args, outputs []*expr.Tensor
	for _, t := range slices.Concat(w.Inputs, w.Constants) {
		args = append(args, c.argument(t))
	}
	for _, t := range w.Stages {
		c.stage(t, slices.Contains(w.Outputs, t))
	}
	for _, t := range w.Outputs {
		outputs = append(outputs, c.tensors[t])
	}
	if c.isEmpty {
		return nil, nil
	}
	return expr.NewWorkload(outputs, args...)
}

type capping struct {
	*op.Lowering
	extents map[*extent.Symbol]extent.Extent
	points  map[*extent.Symbol][]int64
	tensors map[*expr.Tensor]*expr.Tensor
	vars    map[*expr.Var]expr.Expr
	isEmpty bool
}

// argument returns an input restricted to the part below the caps, at the same place.
func (c *capping) argument(t *expr.Tensor) *expr.Tensor {
	c.tensors[t] = t
	if t.Role != expr.Input {
		return t
	}
	cut, arg := *t, c.Args[t]
	if arg.Symbol != nil {
		cut.Max = c.extents[arg.Symbol].Over(extent.Of(arg.Symbol.Step)).Max()
		if points := c.points[arg.Symbol]; points != nil {
			cut.Points = points
		}
	} else {
		shape := arg.Shape.Replace(c.extents)
		c.isEmpty = c.isEmpty || shape.IsEmpty()
		cut.Shape = shape.Max()
		cut.Strides = stridesIn(&cut, t)
	}
	c.tensors[t] = &cut
	return &cut
}

// stridesIn returns the strides of a tensor that occupies part of a larger one.
func stridesIn(part, whole *expr.Tensor) []int64 {
	strides := whole.MemoryStrides()
	if whole.Strides == nil && slices.Equal(strides, expr.RowMajorStrides(part.Shape)) {
		return nil
	}
	return strides
}

func (c *capping) stage(t *expr.Tensor, isOutput bool) {
	cut := *t
	cut.Axes, cut.Reduce = c.variables(t.Axes), c.variables(t.Reduce)
	cut.Shape = make([]int64, len(cut.Axes))
	for k, v := range cut.Axes {
		cut.Shape[k] = v.Extent
	}
	if isOutput {
		cut.Strides = stridesIn(&cut, t)
	}
	cut.Body = expr.Rewrite(t.Body, c.rewritten)
	c.tensors[t] = &cut
}

func (c *capping) variables(vars []*expr.Var) []*expr.Var {
	list := make([]*expr.Var, len(vars))
	for k, v := range vars {
		x := *v
		if v.Limit != nil {
			n := c.Extents[v].With(c.extents)
			if x.Extent, x.Limit = n.Max(), nil; n.IsOpen() {
				x.Limit = expr.Rewrite(v.Limit, c.rewritten)
			}
		}
		c.isEmpty = c.isEmpty || x.Extent == 0
		list[k], c.vars[v] = &x, &x
	}
	return list
}

func (c *capping) rewritten(e expr.Expr) expr.Expr {
	switch n := e.(type) {
	case *expr.Var:
		if x := c.vars[n]; x != nil {
			return x
		}
	case *expr.Load:
		if s := c.Args[n.Tensor].Symbol; s != nil && !c.extents[s].IsOpen() {
			return c.Extent(c.extents[s].Over(extent.Of(s.Step)))
		}
		if t := c.tensors[n.Tensor]; t != nil {
			return &expr.Load{Tensor: t, Index: n.Index}
		}
	}
	return e
}
