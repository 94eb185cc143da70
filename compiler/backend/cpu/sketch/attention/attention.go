package attention

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch/nest"
	"github.com/tilth-dev/tilth/compiler/target"
)

// attention is the sketch of softmax attention, two products with a softmax of rows between them. A block of rows goes
// through all stages while its scores lie in the cache; they never become a tensor in memory.
//
//	[keys and values, laid out as the products read them]        on their own, or for each batch
//	parallel over batches (and blocks of rows)
//	  block of rows
//	    masked = scores of the block, th x tv vectors at a time  accumulators in registers
//	    largest, exp, sum, total                                 row by row, vectors along the row
//	    out = mixed values, th x tv vectors at a time            accumulators in registers
type attention struct {
	target *target.Target
	// The stages by role, as package op writes them; keys and values are -1 where the operands are read as they are.
	out, mixed, total, sum, exp, largest, masked, scores, keys, values int
	// batch has the axes of out that every stage has, row the one that keys lack and column the one that scores lack.
	batch       []int
	row, column int
	// dims has the dimension of each axis of out in each stage, -1 for none.
	dims map[int][]int
	// straight are those of keys and values whose operand is contiguous already.
	straight map[int]bool
	lanes    int64
	// extents: rows, keys to each row, terms of a score, columns of the result, and batches.
	m, n, d, e, batches int64
}

// parameters are the numbers that the sketch leaves open.
type parameters struct {
	// rows x vectors are the register tile of both products.
	rows, vectors int64
	// block is how many rows a block has.
	block int64
	// unroll is how many steps of a product are written out.
	unroll int64
	// keys and values are where the operands are laid out anew.
	keys, values int64
}

// New is the schedules of a workload; nil when it is no attention.
func New(w *expr.Workload, t *target.Target) *nest.Whole {
	a := newAttention(w, t)
	if a == nil {
		return nil
	}
	return &nest.Whole{Out: a.out, Family: a.family()}
}

func newAttention(w *expr.Workload, t *target.Target) *attention {
	s := schedule.New(w)
	if len(w.Outputs) != 1 {
		return nil
	}
	a := &attention{target: t, keys: -1, values: -1, dims: map[int][]int{}, straight: map[int]bool{}}
	out := s.Producer(w.Outputs[0])
	a.out = out.ID
	if !a.findStages(s) || !a.findAxes(s) {
		return nil
	}
	a.lanes = max(1, int64(t.CPU.VectorBytes)/out.Tensor.DType.Bytes())
	a.m, a.e = out.Axes[a.row].Extent, out.Axes[a.column].Extent
	a.n, a.d = s.Stages[a.mixed].Reduce[0].Extent, s.Stages[a.scores].Reduce[0].Extent
	a.batches = 1
	for _, k := range a.batch {
		a.batches *= out.Axes[k].Extent
	}
	return a
}

// findStages finds the roles from the last stage back.
func (a *attention) findStages(s *schedule.Schedule) bool {
	used := 0
	take := func(role *int, reading *schedule.Stage, c expr.Combiner, which func(g *schedule.Stage) bool) bool {
		for _, l := range expr.Loads(reading.Body) {
			if g := s.Producer(l.Tensor); g != nil && g.Combiner == c && which(g) {
				*role = g.ID
				used++
				return true
			}
		}
		return false
	}
	product := func(g *schedule.Stage) bool { return len(g.Reduce) == 1 && isProduct(g) }
	single := func(g *schedule.Stage) bool { return len(g.Reduce) == 1 && len(expr.Loads(g.Body)) == 1 }
	isExp := func(g *schedule.Stage) bool { u, ok := g.Body.(*expr.Unary); return ok && u.Op == expr.Exp }
	stage := func(id int) *schedule.Stage { return s.Stages[id] }
	any := func(*schedule.Stage) bool { return true }
	if !take(&a.mixed, stage(a.out), expr.Sum, product) || !take(&a.total, stage(a.out), expr.None, any) ||
		!take(&a.sum, stage(a.total), expr.Sum, single) || !take(&a.exp, stage(a.mixed), expr.None, isExp) ||
		!take(&a.largest, stage(a.exp), expr.Maximum, single) || !take(&a.masked, stage(a.exp), expr.None, any) ||
		!take(&a.scores, stage(a.masked), expr.Sum, product) {
		return false
	}
	take(&a.keys, stage(a.scores), expr.None, isCopy)
	take(&a.values, stage(a.mixed), expr.None, isCopy)
	return used+1 == len(s.Stages) && reads(s, a.sum, a.exp) && reads(s, a.largest, a.masked)
}

// isProduct reports whether a reduction's terms are products of two loads.
func isProduct(g *schedule.Stage) bool {
	b, ok := g.Body.(*expr.Binary)
	if !ok || b.Op != expr.Mul {
		return false
	}
	return len(expr.Loads(b.A)) == 1 && len(expr.Loads(b.B)) == 1
}

// isCopy reports whether a map only moves elements.
func isCopy(g *schedule.Stage) bool {
	_, isLoad := g.Body.(*expr.Load)
	return isLoad
}

func reads(s *schedule.Schedule, reader, read int) bool {
	return slices.ContainsFunc(expr.Loads(s.Stages[reader].Body), func(l *expr.Load) bool { return l.Tensor == s.Stages[read].Tensor })
}

// findAxes tells batches, rows and columns apart.
func (a *attention) findAxes(s *schedule.Schedule) bool {
	out := s.Stages[a.out]
	labels := map[*expr.Var]int{}
	for k, v := range out.Axes {
		labels[v] = k
	}
	for _, id := range []int{a.mixed, a.total, a.sum, a.exp, a.largest, a.masked, a.scores, a.keys, a.values} {
		if id < 0 {
			continue
		}
		g := s.Stages[id]
		a.dims[id] = slices.Repeat([]int{-1}, len(out.Axes))
		for d, v := range g.Axes {
			if label, ok := nest.SameLabel(s, g, d, labels); ok {
				labels[v] = label
				a.dims[id][label] = d
			}
		}
	}
	a.row, a.column = -1, -1
	for k := range out.Axes {
		switch {
		case a.dims[a.mixed][k] < 0:
			return false
		case a.dims[a.scores][k] < 0:
			a.column = k
		case a.loads(s, a.mixed, k) == 2 && a.loads(s, a.scores, k) == 2:
			a.batch = append(a.batch, k)
		default:
			a.row = k
		}
	}
	rank := len(out.Axes)
	if a.row < 0 || a.column != rank-1 || len(a.batch) != rank-2 || len(s.Stages[a.scores].Axes) != rank || len(s.Stages[a.total].Axes) != rank-1 {
		return false
	}
	for _, id := range []int{a.keys, a.values} {
		if id >= 0 {
			g := s.Stages[id]
			if len(g.Axes) != rank { // an operand that is no matrix, of an outer product
				return false
			}
			a.straight[id] = nest.MovesByOne(g, g.Axes[len(g.Axes)-1])
		}
	}
	return true
}

// loads counts the operands of a product that axis k of out moves.
func (a *attention) loads(s *schedule.Schedule, id, k int) int {
	g, n := s.Stages[id], 0
	for _, l := range expr.Loads(g.Body) {
		if slices.ContainsFunc(l.Index, func(x expr.Expr) bool { return expr.Uses(x, g.Axes[a.dims[id][k]]) }) {
			n++
		}
	}
	return n
}
