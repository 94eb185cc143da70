package cost

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// load adds a load to the accesses, merging loads that differ in constants.
func (r reader) load(l *expr.Load, weight float64) {
	used, quotients := r.room.used, len(r.quotients)
	x := r.access(l)
	x.Loads = weight
	for k := range r.at.Reads {
		same := &r.at.Reads[k]
		if same.Tensor == x.Tensor && slices.Equal(same.rows, x.rows) && alike(same.quotients, x.quotients) {
			same.Loads += weight
			same.parts++
			for d, at := range x.low {
				same.low[d], same.high[d] = min(same.low[d], at), max(same.high[d], at)
			}
			r.room.used, r.quotients = used, r.quotients[:quotients] // hundreds of loads may be merged
			return
		}
	}
	r.at.Reads = append(r.at.Reads, x)
}

// Accesses returns the loads of a stage, one access each, and its result, which comes last, as functions of the given
// number of axes. Those of the stage come first.
func Accesses(s *schedule.Schedule, g *schedule.Stage, axes int) (list []Access) {
	r := reader{&Analysis{Schedule: s}, &Statement{Nest: Nest{Stage: g, Axes: make([]float64, axes)}}}
	for _, l := range expr.Loads(g.Body) {
		list = append(list, r.access(l))
	}
	r.result()
	return append(list, r.at.Result)
}

// access returns the access of a load.
func (r reader) access(l *expr.Load) Access {
	axes := len(r.at.Nest.Axes)
	x := r.accessOf(l.Tensor, len(l.Index))
	x.Producer, x.Packed = r.producer(l.Tensor), r.packed(l.Tensor)
	first := len(r.quotients)
	i := index{reader: r}
	for d, e := range l.Index {
		i.dim, i.row, i.extent = d, x.rows[d*axes:(d+1)*axes], float64(l.Tensor.Shape[d])
		at := i.linear(e, 1)
		x.low[d], x.high[d] = at, at
	}
	x.quotients = r.quotients[first:len(r.quotients):len(r.quotients)]
	return x
}

// accessOf returns an access that no axis moves.
func (r reader) accessOf(t *expr.Tensor, dims int) Access {
	rows, low, high := r.room.take(len(r.at.Nest.Axes)*dims), r.room.take(dims), r.room.take(dims)
	return Access{Tensor: t, Producer: -1, ElementBytes: t.DType.Bytes(), Grouped: -1, Loads: 1, parts: 1, rows: rows, low: low, high: high}
}

// index reads one index of a load.
type index struct {
	reader
	dim int
	// row receives the magnitude of each axis' coefficient.
	row []float64
	// extent is the dimension's extent.
	extent float64
	// divided is set within a quotient.
	divided bool
}

// linear adds an expression and returns its constant. For an unpredictable index, such as one read from memory, any
// change of an axis reaches the whole dimension.
func (i *index) linear(e expr.Expr, scale float64) float64 {
	switch n := e.(type) {
	case *expr.Int:
		return scale * float64(n.Value)
	case *expr.Var:
		if k := i.at.Nest.axis(n); k >= 0 {
			i.row[k] += math.Abs(scale)
		}
		return 0
	case *expr.Binary:
		switch n.Op {
		case expr.Add:
			return i.linear(n.A, scale) + i.linear(n.B, scale)
		case expr.Sub:
			return i.linear(n.A, scale) - i.linear(n.B, scale)
		}
		switch c, isConstant := mostOf(n.B); {
		case n.Op == expr.Mul && isConstant:
			return i.linear(n.A, scale*float64(c))
		case n.Op == expr.FloorDiv && isConstant && c > 0:
			return i.quotient(n.A, scale, float64(c), false) / float64(c)
		case n.Op == expr.FloorMod && isConstant && c > 0:
			i.quotient(n.A, scale, float64(c), true)
			return 0
		}
		i.linear(n.A, i.extent)
		i.linear(n.B, i.extent)
	case *expr.Load:
		for _, x := range n.Index {
			i.linear(x, i.extent)
		}
	case *expr.Unary:
		i.linear(n.A, i.extent)
	case *expr.Cast:
		return i.linear(n.A, scale)
	case *expr.Select:
		i.linear(n.A, scale)
		i.linear(n.B, scale)
	}
	return 0
}

// mostOf returns the largest value of a constant or of an extent that an execution chooses.
func mostOf(e expr.Expr) (most int64, ok bool) {
	if c, isInt := e.(*expr.Int); isInt { // the common case
		return c.Value, true
	}
	_, most, ok = expr.Linearize(e).Bounds()
	expr.Walk(e, func(x expr.Expr) {
		if _, isVar := x.(*expr.Var); isVar {
			ok = false
		}
	})
	return most, ok
}

// quotient adds a quotient and returns the constant of its dividend, times the scale. A nested quotient adds its
// average step.
func (i *index) quotient(e expr.Expr, scale, by float64, rest bool) float64 {
	if i.divided {
		if rest {
			return i.linear(e, scale)
		}
		return by * i.linear(e, scale/by)
	}
	q := quotient{dim: i.dim, scale: math.Abs(scale), row: i.room.take(len(i.row)), by: by, rest: rest}
	whole := i.row
	i.row, i.divided = q.row, true
	at := scale * i.linear(e, 1)
	i.row, i.divided = whole, false
	i.quotients = append(i.quotients, q)
	return at
}

// axis returns the number of a variable among the axes, or -1.
func (n *Nest) axis(v *expr.Var) int {
	if k := slices.Index(n.Stage.Axes, v); k >= 0 {
		return k
	}
	if k := slices.Index(n.Stage.Reduce, v); k >= 0 {
		return len(n.Stage.Axes) + k
	}
	return -1
}

// result adds the access of the statement's store.
func (r reader) result() {
	g, axes := r.at.Nest.Stage, len(r.at.Nest.Axes)
	x := &r.at.Result
	*x = r.accessOf(g.Tensor, len(g.Axes))
	x.Store = true
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

// producer returns the number of the statement that computes a tensor, or -1 for an argument of the kernel.
func (a *Analysis) producer(t *expr.Tensor) int {
	if t.Role != expr.Computed {
		return -1
	}
	for k := range a.Statements {
		if a.Statements[k].Nest.Stage.Tensor == t {
			return k
		}
	}
	return -1
}
