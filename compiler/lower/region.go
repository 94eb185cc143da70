package lower

import (
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// span is the range min <= v < min+extent, of which an execution needs what precedes end; nil if it needs all.
type span struct {
	min    expr.Expr
	extent int64
	end    expr.Expr
}

// region infers the part of stage p that the nest needs at this point, from every load in stages computed inside it.
func (l *lowerer) region(p *schedule.Stage, n *nest) []span {
	return l.regionDepth(p, n, 0)
}

func (l *lowerer) regionDepth(p *schedule.Stage, n *nest, depth int) []span {
	if depth > len(l.s.Stages) {
		fail("stages are computed inside one another in a cycle")
	}
	l.spend(len(l.s.Stages))
	if p.KeptInside() && n.g == p.Kept {
		return n.keptRegion(p)
	}
	var region []span
	for _, c := range l.consumersOf(p) {
		vars := l.axisSpans(c, n, depth)
		for _, load := range c.Loads() {
			if load.Tensor != p.Tensor {
				continue
			}
			l.spend(expr.Size(load))
			load = expr.Rewrite(load, l.counted).(*expr.Load)
			spans := loadSpans(load, vars, l.exact)
			if c == n.g {
				n.tighten(spans, load, l.exact)
			}
			region = union(region, spans, p.Tensor.Shape)
		}
	}
	if region == nil {
		fail("nothing uses stage %d", p.ID)
	}
	for k := range region { // threads that wait for each other have equal loops
		if l.whole[p] || l.around != (levels{}) {
			region[k].end = nil
		}
	}
	return region
}

// consumersOf caches a stage's consumers, which lowering queries repeatedly and does not change.
func (l *lowerer) consumersOf(p *schedule.Stage) []*schedule.Stage {
	list, ok := l.consumers[p]
	if !ok {
		list = l.s.Consumers(p)
		l.consumers[p] = list
	}
	return list
}

// axisSpans returns the range of each of consumer c's axes at this point of the nest.
func (l *lowerer) axisSpans(c *schedule.Stage, n *nest, depth int) map[*expr.Var]span {
	vars := map[*expr.Var]span{}
	if c == n.g {
		for k := range n.extents {
			s := n.span(c.Iters[k])
			vars[c.AxisVar(k)] = span{expr.AddE(n.mins[k], s.min), s.extent, l.end(n, k)}
		}
		return vars
	}
	if c.Consumer == nil {
		fail("stage %d is used outside the nest that computes it", c.ID)
	}
	region := l.regionDepth(c, n, depth+1)
	for k, s := range region {
		if guardsSeveral(c.Iters[k]) {
			fail("stage %d has tiles of several axes that go beyond their ends, and is computed inside another", c.ID)
		}
		vars[c.Axes[k]] = s.covered(c.Iters[k])
	}
	for _, r := range c.Reduce {
		vars[r] = span{expr.I(0), r.Extent, nil}
	}
	return vars
}

// loadSpans returns the ranges of a load's indices, clipped to the tensor unless exact is set.
func loadSpans(load *expr.Load, vars map[*expr.Var]span, exact bool) []span {
	spans := make([]span, len(load.Index))
	for k, x := range load.Index {
		whole := span{expr.I(0), load.Tensor.Shape[k], nil}
		s, ok := spanOf(expr.Linearize(x), vars)
		if !ok || !exact && s.extent >= whole.extent {
			whole.end, s = s.end, whole
		}
		spans[k] = span{expr.Simplify(s.min), s.extent, s.end}
	}
	return spans
}

// spanOf returns the range of an index expression; ok is false if it is unknown.
func spanOf(l expr.Linear, vars map[*expr.Var]span) (span, bool) {
	total := span{expr.I(l.Const), 1, nil}
	end, isLess := expr.I(l.Const+1), false
	for _, t := range l.Terms {
		s, ok := atomSpan(t.Atom, vars)
		if !ok {
			return span{}, false
		}
		lowest, size := s.min, t.Coef
		if t.Coef < 0 {
			lowest, size = expr.AddE(s.min, expr.I(s.extent-1)), -t.Coef
		}
		total.min = expr.AddE(total.min, expr.MulE(lowest, expr.I(t.Coef)))
		total.extent += size * (s.extent - 1)
		switch last := expr.AddE(lowest, expr.I(s.extent-1)); {
		case s.end != nil && t.Coef == 1 && len(l.Terms) == 1:
			end, isLess = expr.AddE(s.end, expr.I(l.Const)), true
		case t.Coef < 0:
			end = expr.AddE(end, expr.MulE(s.min, expr.I(t.Coef)))
		default:
			if s.end != nil {
				last, isLess = expr.MinE(last, expr.SubE(s.end, expr.I(1))), true
			}
			end = expr.AddE(end, expr.MulE(last, expr.I(t.Coef)))
		}
	}
	if isLess {
		total.end = expr.Simplify(end)
	}
	return total, true
}

func atomSpan(atom expr.Expr, vars map[*expr.Var]span) (span, bool) {
	switch a := atom.(type) {
	case *expr.Var:
		s, ok := vars[a]
		if !ok {
			return span{a, 1, nil}, true
		}
		return s, true
	case *expr.Binary:
		c, ok := a.B.(*expr.Int)
		if !ok && a.Op != expr.Min && a.Op != expr.Max { // by an extent of the execution
			moves := slices.ContainsFunc(slices.Collect(maps.Keys(vars)), func(v *expr.Var) bool { return expr.Uses(a, v) })
			return span{a, 1, nil}, !moves
		}
		if !ok || a.Op != expr.FloorDiv && a.Op != expr.FloorMod {
			return span{}, false
		}
		s, ok := spanOf(expr.Linearize(a.A), vars)
		if !ok {
			return span{}, false
		}
		return divisionSpan(a.Op, s, c.Value)
	}
	return span{}, false
}

func divisionSpan(op expr.BinaryOp, s span, c int64) (span, bool) {
	rest := expr.Simplify(expr.Bin(expr.FloorMod, s.min, expr.I(c)))
	one := s.extent == 1 || withinRow(rest, s.extent, c)
	if op == expr.FloorMod {
		if one {
			return span{rest, s.extent, nil}, true
		}
		return span{expr.I(0), c, nil}, true
	}
	quotient, end := expr.Bin(expr.FloorDiv, s.min, expr.I(c)), s.end
	if end != nil {
		end = expr.Bin(expr.FloorDiv, expr.AddE(end, expr.I(c-1)), expr.I(c))
	}
	switch {
	case one:
		return span{quotient, 1, nil}, true
	case expr.Same(rest, expr.I(0)):
		return span{quotient, (s.extent-1)/c + 1, end}, true
	default:
		return span{quotient, (s.extent-1)/c + 2, end}, true
	}
}

// union returns a region that contains both; a is nil at first.
func union(a, b []span, shape []int64) []span {
	if a == nil {
		return b
	}
	u := make([]span, len(a))
	for k := range a {
		d := expr.Linearize(expr.SubE(b[k].min, a[k].min))
		var end expr.Expr
		if a[k].end != nil && b[k].end != nil {
			end = expr.Simplify(expr.MaxE(a[k].end, b[k].end))
		}
		if len(d.Terms) > 0 {
			u[k] = span{expr.I(0), shape[k], end}
			continue
		}
		lo := min(0, d.Const)
		hi := max(a[k].extent, d.Const+b[k].extent)
		u[k] = span{expr.Simplify(expr.AddE(a[k].min, expr.I(lo))), hi - lo, end}
	}
	return u
}

// clamp moves a region into the tensor's shape, keeping its extents if they fit. Elements outside are never read,
// since such loads are guarded by a condition. Minima that need a computation are returned as Lets.
func clamp(region []span, shape []int64) (mins []expr.Expr, extents []int64, lets ir.Block) {
	for k, s := range region {
		extent := min(s.extent, shape[k])
		first := s.min
		room := shape[k] - extent
		if room == 0 {
			first = expr.I(0)
		} else if lo, hi, ok := expr.Linearize(first).Bounds(); !ok || lo < 0 || hi > room {
			v := &expr.Var{Name: "m", Extent: room + 1}
			value := expr.Simplify(expr.MaxE(expr.MinE(first, expr.I(room)), expr.I(0)))
			lets = append(lets, &ir.Let{Var: v, Value: value})
			first = v
		}
		mins, extents = append(mins, first), append(extents, extent)
	}
	return mins, extents, lets
}
