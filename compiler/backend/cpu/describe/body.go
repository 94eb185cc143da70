package describe

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// arithmetic counts operations by kind.
type arithmetic struct {
	multiplyAdds, adds, divides, transcendentals, integers, selects, casts, guards float64
}

func (c *arithmetic) add(o arithmetic, times float64) {
	c.multiplyAdds += o.multiplyAdds * times
	c.adds += o.adds * times
	c.divides += o.divides * times
	c.transcendentals += o.transcendentals * times
	c.integers += o.integers * times
	c.selects += o.selects * times
	c.casts += o.casts * times
	c.guards += o.guards * times
}

// slots is how many cycles of one arithmetic port the operations take, on vectors: a division keeps it for several
// cycles, and a transcendental function is a polynomial of about twenty steps.
func (c *arithmetic) slots() float64 {
	return c.multiplyAdds + c.adds + 8*c.divides + 20*c.transcendentals + c.integers + c.selects + c.casts
}

// reader collects what a body does: its operations, and its accesses.
type reader struct {
	*analysis
	at *statement
}

// body reads a statement's computation. The value combined with the result so far counts, too.
func (a *analysis) body(x *statement) {
	r := reader{a, x}
	g := x.nest.stage
	switch b, isProduct := g.Body.(*expr.Binary); {
	case g.Combiner == expr.Sum && isProduct && b.Op == expr.Mul:
		x.ops.multiplyAdds++
		r.value(b.A, 1)
		r.value(b.B, 1)
	default:
		r.value(g.Body, 1)
		if g.Combiner != expr.None {
			r.count(g.Tensor.DType.IsFloat(), 1)
		}
	}
	r.result()
}

// value counts an expression that is computed weight times for each iteration.
func (r reader) value(e expr.Expr, weight float64) {
	switch n := e.(type) {
	case *expr.Load:
		r.load(n, weight)
	case *expr.Binary:
		r.binary(n, weight)
	case *expr.Unary:
		switch n.Op.Work() {
		case expr.Division:
			r.at.ops.divides += weight
		case expr.Transcendental:
			r.at.ops.transcendentals += weight
		default:
			r.count(n.A.DType().IsFloat(), weight)
		}
		r.value(n.A, weight)
	case *expr.Cast:
		r.at.ops.casts += weight
		r.value(n.A, weight)
	case *expr.Select:
		r.choice(n, weight)
	}
}

// binary counts a multiplication whose result is added to something as one operation.
func (r reader) binary(n *expr.Binary, weight float64) {
	switch {
	case n.Op.Work() == expr.Transcendental:
		r.at.ops.transcendentals += weight
	case n.Op.Work() == expr.Division:
		r.at.ops.divides += weight
	case (n.Op == expr.Add || n.Op == expr.Sub) && n.DType().IsFloat():
		for _, side := range [2]expr.Expr{n.A, n.B} {
			if m, ok := side.(*expr.Binary); ok && m.Op == expr.Mul {
				r.at.ops.multiplyAdds += weight
				r.value(m.A, weight)
				r.value(m.B, weight)
				r.value(other(n, side), weight)
				return
			}
		}
		r.at.ops.adds += weight
	default:
		r.count(n.A.DType().IsFloat(), weight)
	}
	r.value(n.A, weight)
	r.value(n.B, weight)
}

func other(n *expr.Binary, side expr.Expr) expr.Expr {
	if n.A == side {
		return n.B
	}
	return n.A
}

func (r reader) count(float bool, weight float64) {
	if float {
		r.at.ops.adds += weight
	} else {
		r.at.ops.integers += weight
	}
}

// choice counts a selection. One by index leaves the loops: where an axis is compared with one value after the other,
// as the transforms of Winograd's algorithm are, each side is computed for its share of the values, and elsewhere it
// is padding.
func (r reader) choice(n *expr.Select, weight float64) {
	if readsMemory(n.Cond) {
		r.at.ops.selects += weight
		r.value(n.Cond, weight)
		r.value(n.A, weight)
		r.value(n.B, weight)
		return
	}
	if share, ok := shareOf(n.Cond); ok {
		r.value(n.A, weight*share)
		r.value(n.B, weight*(1-share))
		return
	}
	r.at.ops.guards += weight
	r.value(n.A, weight)
	r.value(n.B, weight)
}

// shareOf is the share of an axis' values that are equal to a constant, among those that were not compared before.
func shareOf(cond expr.Expr) (share float64, ok bool) {
	b, isBinary := cond.(*expr.Binary)
	if !isBinary || b.Op != expr.Eq {
		return 0, false
	}
	c, isInt := b.B.(*expr.Int)
	values := int64(0)
	switch a := b.A.(type) {
	case *expr.Var:
		values = a.Extent
	case *expr.Binary:
		if m, ok := a.B.(*expr.Int); ok && a.Op == expr.FloorMod {
			values = m.Value
		}
	}
	if !isInt || c.Value < 0 || c.Value >= values {
		return 0, false
	}
	return 1 / float64(values-c.Value), true
}

func readsMemory(e expr.Expr) bool {
	switch n := e.(type) {
	case *expr.Load:
		return true
	case *expr.Binary:
		return readsMemory(n.A) || readsMemory(n.B)
	case *expr.Unary:
		return readsMemory(n.A)
	case *expr.Cast:
		return readsMemory(n.A)
	case *expr.Select:
		return readsMemory(n.Cond) || readsMemory(n.A) || readsMemory(n.B)
	}
	return false
}

// load adds a load to the accesses, or to one that differs by constants.
func (r reader) load(l *expr.Load, weight float64) {
	axes := len(r.at.nest.axes)
	x := access{tensor: l.Tensor, producer: r.producer(l.Tensor), loads: weight, packed: r.packed(l.Tensor)}
	x.rows, x.low, x.high = r.room.take(axes*len(l.Index)), r.room.take(len(l.Index)), r.room.take(len(l.Index))
	for d, e := range l.Index {
		at := r.linear(e, 1, x.rows[d*axes:(d+1)*axes], float64(l.Tensor.Shape[d]))
		x.low[d], x.high[d] = at, at
	}
	for k := range r.at.reads {
		same := &r.at.reads[k]
		if same.tensor == x.tensor && slices.Equal(same.rows, x.rows) {
			same.loads += weight
			for d, at := range x.low {
				same.low[d], same.high[d] = min(same.low[d], at), max(same.high[d], at)
			}
			return
		}
	}
	r.at.reads = append(r.at.reads, x)
}

// linear adds the magnitude of each axis' coefficient to a row and is the constant. Quotients have coefficients below
// one; of what cannot be told, such as an index that is read from memory, any change of an axis reaches the whole
// dimension.
func (r reader) linear(e expr.Expr, scale float64, row []float64, extent float64) float64 {
	switch n := e.(type) {
	case *expr.Int:
		return scale * float64(n.Value)
	case *expr.Var:
		if k := r.at.nest.axis(n); k >= 0 {
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
func (n *nest) axis(v *expr.Var) int {
	if k := slices.Index(n.stage.Axes, v); k >= 0 {
		return k
	}
	if k := slices.Index(n.stage.Reduce, v); k >= 0 {
		return len(n.stage.Axes) + k
	}
	return -1
}

// result is what the statement stores.
func (r reader) result() {
	g, axes := r.at.nest.stage, len(r.at.nest.axes)
	x := &r.at.result
	*x = access{tensor: g.Tensor, producer: -1, loads: 1, store: true}
	x.rows, x.low, x.high = r.room.take(axes*len(g.Axes)), r.room.take(len(g.Axes)), r.room.take(len(g.Axes))
	for d := range g.Axes {
		x.rows[d*axes+d] = 1
	}
}

// packed reports whether a tensor is a constant that is laid out anew.
func (a *analysis) packed(t *expr.Tensor) bool {
	if t.Role != expr.Constant {
		return false
	}
	for c, constant := range a.s.Workload.Constants {
		if a.s.Packs[c] == nil {
			continue
		}
		if tr := a.s.Transforms[c]; tr != nil && tr.Tensor == t || constant == t {
			return true
		}
	}
	return false
}

// producer is the number of the statement that computes a tensor; -1 for an argument of the kernel.
func (a *analysis) producer(t *expr.Tensor) int {
	if t.Role != expr.Computed {
		return -1
	}
	return slices.IndexFunc(a.statements, func(x statement) bool { return x.nest.stage.Tensor == t })
}
