package cost

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// load adds a load to the accesses, or to one that differs by constants.
func (r reader) load(l *expr.Load, weight float64) {
	axes := len(r.at.Nest.Axes)
	x := Access{Tensor: l.Tensor, Producer: r.producer(l.Tensor), Loads: weight, Packed: r.packed(l.Tensor)}
	x.rows, x.low, x.high = r.room.take(axes*len(l.Index)), r.room.take(len(l.Index)), r.room.take(len(l.Index))
	for d, e := range l.Index {
		at := r.linear(e, 1, x.rows[d*axes:(d+1)*axes], float64(l.Tensor.Shape[d]))
		x.low[d], x.high[d] = at, at
	}
	for k := range r.at.Reads {
		same := &r.at.Reads[k]
		if same.Tensor == x.Tensor && slices.Equal(same.rows, x.rows) {
			same.Loads += weight
			for d, at := range x.low {
				same.low[d], same.high[d] = min(same.low[d], at), max(same.high[d], at)
			}
			return
		}
	}
	r.at.Reads = append(r.at.Reads, x)
}

// linear adds the magnitude of each axis' coefficient to a row and is the constant. Quotients have coefficients below
// one; of what cannot be told, such as an index that is read from memory, any change of an axis reaches the whole
// dimension.
func (r reader) linear(e expr.Expr, scale float64, row []float64, extent float64) float64 {
	switch n := e.(type) {
	case *expr.Int:
		return scale * float64(n.Value)
	case *expr.Var:
		if k := r.at.Nest.axis(n); k >= 0 {
			row[k] += max(scale, -scale)
		}
		return 0
	case *expr.Binary:
		switch c, isConstant := n.B.(*expr.Int); {
		case n.Op == expr.Add:
			return r.linear(n.A, scale, row, extent) + r.linear(n.B, scale, row, extent)
		case n.Op == expr.Sub:
			return r.linear(n.A, scale, row, extent) - r.linear(n.B, scale, row, extent)
		case n.Op == expr.Mul && isConstant:
			return r.linear(n.A, scale*float64(c.Value), row, extent)
		case n.Op == expr.FloorDiv && isConstant && c.Value > 0:
			return r.linear(n.A, scale/float64(c.Value), row, extent)
		case n.Op == expr.FloorMod && isConstant:
			r.linear(n.A, scale, row, extent)
			return 0
		}
		r.linear(n.A, extent, row, extent)
		r.linear(n.B, extent, row, extent)
	case *expr.Load:
		for _, x := range n.Index {
			r.linear(x, extent, row, extent)
		}
	case *expr.Unary:
		r.linear(n.A, extent, row, extent)
	case *expr.Cast:
		return r.linear(n.A, scale, row, extent)
	case *expr.Select:
		r.linear(n.A, scale, row, extent)
		r.linear(n.B, scale, row, extent)
	}
	return 0
}

// axis is the number of a variable among the axes; -1 when it is none.
func (n *Nest) axis(v *expr.Var) int {
	if k := slices.Index(n.Stage.Axes, v); k >= 0 {
		return k
	}
	if k := slices.Index(n.Stage.Reduce, v); k >= 0 {
		return len(n.Stage.Axes) + k
	}
	return -1
}

// result is what the statement stores.
func (r reader) result() {
	g, axes := r.at.Nest.Stage, len(r.at.Nest.Axes)
	x := &r.at.Result
	*x = Access{Tensor: g.Tensor, Producer: -1, Loads: 1, Store: true}
	x.rows, x.low, x.high = r.room.take(axes*len(g.Axes)), r.room.take(len(g.Axes)), r.room.take(len(g.Axes))
	for d := range g.Axes {
		x.rows[d*axes+d] = 1
	}
}

// packed reports whether a tensor is a constant that is laid out anew.
func (a *Analysis) packed(t *expr.Tensor) bool {
	if t.Role != expr.Constant {
		return false
	}
	for c, constant := range a.Schedule.Workload.Constants {
		if a.Schedule.Packs[c] == nil {
			continue
		}
		if tr := a.Schedule.Transforms[c]; tr != nil && tr.Tensor == t || constant == t {
			return true
		}
	}
	return false
}

// producer is the number of the statement that computes a tensor; -1 for an argument of the kernel.
func (a *Analysis) producer(t *expr.Tensor) int {
	if t.Role != expr.Computed {
		return -1
	}
	return slices.IndexFunc(a.Statements, func(x Statement) bool { return x.Nest.Stage.Tensor == t })
}
