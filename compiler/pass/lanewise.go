package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// LaneForms describes the vector operations of a backend.
type LaneForms interface {
	// Has reports whether the backend has a vector form of an operator or select. Operands, loads and casts are
	// checked separately.
	Has(e expr.Expr, lane *expr.Var) bool
}

// Lanewise scalarizes vector loops as far as a backend lacks vector forms, and leaves one statement in each vector
// loop. A value that differs between lanes either has a vector form or becomes an ir.Lanes. Lanes that are not
// contiguous are stored one by one. A condition that is uniform across lanes is evaluated for the first lane,
// without the loop variable.
func Lanewise(f *ir.Func, forms LaneForms) *ir.Func {
	return ir.MapBlocks(f, func(b ir.Block, in ir.Allocated) ir.Block {
		var out ir.Block
		for _, st := range b {
			switch n := st.(type) {
			case *ir.For:
				if n.Kind == ir.Vector {
					l := &lanewiseLoop{forms: forms, lane: n.Var, in: in}
					for _, inner := range n.Body {
						out = append(out, l.stmt(n, inner)...)
					}
					continue
				}
			case *ir.Store:
				st = across(n, forms, in)
			}
			out = append(out, st)
		}
		return out
	})
}

// across rewrites the values whose lanes a store combines.
func across(s *ir.Store, forms LaneForms, in ir.Allocated) ir.Stmt {
	c := *s
	c.Value = expr.Rewrite(s.Value, func(e expr.Expr) expr.Expr {
		if n, ok := e.(*ir.Across); ok {
			return n.Map((&lanewiseLoop{forms: forms, lane: n.Lane, in: in}).value)
		}
		return e
	})
	return &c
}

// lanewiseLoop is a vector loop under rewriting.
type lanewiseLoop struct {
	forms LaneForms
	lane  *expr.Var
	in    ir.Allocated
}

func (l *lanewiseLoop) stmt(n *ir.For, st ir.Stmt) ir.Block {
	if s, ok := st.(*ir.Store); ok {
		if coef, linear := expr.Linearize(s.Index).Coef(l.lane); !linear || coef != 1 {
			return l.scattered(s)
		}
		c := *s
		c.Value = l.value(s.Value)
		st = &c
	}
	return ir.Block{n.With(ir.Block{st})}
}

// scattered stores the lanes one by one.
func (l *lanewiseLoop) scattered(s *ir.Store) (out ir.Block) {
	for k := range l.lane.Extent {
		c := *s
		c.Index, c.Value = l.at(k, s.Index), l.at(k, s.Value)
		out = append(out, &c)
	}
	return out
}

// at returns the value of lane k.
func (l *lanewiseLoop) at(k int64, e expr.Expr) expr.Expr {
	return expr.Simplifier{Values: map[*expr.Var]expr.Expr{l.lane: expr.I(k)}}.Simplify(e)
}

// value rewrites a value into vector forms and ir.Lanes.
func (l *lanewiseLoop) value(e expr.Expr) expr.Expr {
	if !expr.Uses(e, l.lane) {
		return e
	}
	switch n := e.(type) {
	case *expr.Load:
		if l.sideBySide(n) {
			return n
		}
		if near := l.near(n); near != nil {
			return near
		}
	case *ir.Folded:
		return n
	case *expr.Select:
		if first, uniform := Uniform(n.Cond, l.lane); uniform {
			sides := []expr.Expr{first, l.value(n.A), l.value(n.B)}
			return expr.Map(n, func(expr.Expr) (next expr.Expr) {
				next, sides = sides[0], sides[1:]
				return next
			})
		}
		if l.forms.Has(n, l.lane) {
			return expr.Map(n, l.value)
		}
	default:
		if l.forms.Has(n, l.lane) {
			return expr.Map(n, l.value)
		}
	}
	lanes := &ir.Lanes{Lane: l.lane}
	for k := range l.lane.Extent {
		lanes.Values = append(lanes.Values, l.at(k, e))
	}
	return lanes
}

// sideBySide reports whether the lanes of a load are contiguous, or, in registers, form one variable.
func (l *lanewiseLoop) sideBySide(n *expr.Load) bool {
	at := expr.Linearize(n.Index[0])
	coef, linear := at.Coef(l.lane)
	if !linear || coef != 1 {
		return false
	}
	if !l.in.InRegisters(n.Tensor) {
		return true
	}
	slot := ir.Slot{Base: at.Const, Lanes: l.lane.Extent}
	return slices.Contains(l.in[n.Tensor].Slots, slot)
}

// near rewrites a load whose lanes fit into two adjacent vectors: it loads these whole and picks the lanes. It
// returns nil for other loads. A load of one element for all lanes does not depend on the lane.
func (l *lanewiseLoop) near(n *expr.Load) expr.Expr {
	if l.in.InRegisters(n.Tensor) {
		return nil
	}
	first, offsets := ir.Offsets(n.Index[0], l.lane)
	if offsets == nil {
		return nil
	}
	if slices.Min(offsets) == slices.Max(offsets) {
		return l.at(0, n)
	}
	if p := ir.Pick(l.lane, n.Tensor, first, offsets); p != nil {
		return p
	}
	return nil
}

// Uniform returns a condition that is uniform across lanes as a condition on the first lane; ok is false if lanes
// may differ. A bound at a multiple of the vector length from the start, as in a concatenation of whole vectors,
// never splits a vector.
func Uniform(cond expr.Expr, lane *expr.Var) (first expr.Expr, ok bool) {
	if !expr.Uses(cond, lane) {
		return cond, true
	}
	n, isBinary := cond.(*expr.Binary)
	if !isBinary {
		return nil, false
	}
	switch n.Op {
	case expr.And, expr.Or:
		a, okA := Uniform(n.A, lane)
		b, okB := Uniform(n.B, lane)
		if !okA || !okB {
			return nil, false
		}
		return expr.Bin(n.Op, a, b), true
	case expr.Lt, expr.Le:
		return uniformBound(n, lane)
	}
	return nil, false
}

func uniformBound(n *expr.Binary, lane *expr.Var) (first expr.Expr, ok bool) {
	if n.A.DType() != array.Int64 {
		return nil, false
	}
	bound := expr.Linearize(expr.SubE(n.A, n.B)) // n holds where bound < 0, or bound - 1 < 0
	if n.Op == expr.Le {
		bound.Const--
	}
	coef, linear := bound.Coef(lane)
	if !linear || coef != 1 && coef != -1 {
		return nil, false
	}
	begin := bound.Plus(expr.Linearize(lane), -coef)
	if coef == -1 { // the last lane has the smallest bound: bound < 0 splits at begin-lanes+1 to begin
		begin.Const -= lane.Extent - 1
	}
	for _, t := range begin.Terms {
		if t.Coef%lane.Extent != 0 {
			return nil, false
		}
	}
	if begin.Const%lane.Extent != 0 {
		return nil, false
	}
	return expr.Bin(expr.Lt, begin.Expr(), expr.I(0)), true
}
