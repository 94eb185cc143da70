package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Attention holds the stages of softmax attention as package op generates them: two products with a row-wise
// softmax between them, for each head of a batch.
type Attention struct {
	// Out to Values number the stages by role; Keys and Values are -1 if the operands are read directly.
	Out, Mixed, Total, Sum, Exp, Largest, Masked, Scores, Keys, Values int
	// Batch holds the axes of Out that every stage has, except that shared keys and values may lack some. Row is
	// the last axis that keys and values lack, and Column the one that scores lack.
	Batch       []int
	Row, Column int
	// Single is set if each batch has one row and no row axis: Row is then the last batch axis, and not in Batch.
	Single bool
	// Dims holds the dimension of each axis of Out in each stage, or -1.
	Dims map[int][]int
	// Straight holds those of keys and values whose operand is already contiguous.
	Straight map[int]bool
	// M is the number of rows, N of keys per row, D of terms in a score, E of result columns.
	M, N, D, E, Batches int64
}

// MatchAttention matches a workload as attention; it returns nil if it has another form.
func MatchAttention(w *expr.Workload) *Attention {
	s := schedule.New(w)
	if len(w.Outputs) != 1 {
		return nil
	}
	a := &Attention{Keys: -1, Values: -1, Dims: map[int][]int{}, Straight: map[int]bool{}}
	out := s.Producer(w.Outputs[0])
	a.Out = out.ID
	if !a.findStages(s) || !a.findAxes(s) {
		return nil
	}
	a.M, a.E = out.Axes[a.Row].Extent, out.Axes[a.Column].Extent
	a.N, a.D = s.Stages[a.Mixed].Reduce[0].Extent, s.Stages[a.Scores].Reduce[0].Extent
	a.Batches = 1
	for _, k := range a.Batch {
		a.Batches *= out.Axes[k].Extent
	}
	if a.Single {
		a.M, a.Batches = 1, a.Batches*a.M
	}
	return a
}

// findStages assigns the roles from the last stage back.
func (a *Attention) findStages(s *schedule.Schedule) bool {
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
	if !take(&a.Mixed, stage(a.Out), expr.Sum, product) || !take(&a.Total, stage(a.Out), expr.None, any) ||
		!take(&a.Sum, stage(a.Total), expr.Sum, single) || !take(&a.Exp, stage(a.Mixed), expr.None, isExp) ||
		!take(&a.Largest, stage(a.Exp), expr.Maximum, single) || !take(&a.Masked, stage(a.Exp), expr.None, any) ||
		!take(&a.Scores, stage(a.Masked), expr.Sum, product) {
		return false
	}
	take(&a.Keys, stage(a.Scores), expr.None, isCopy)
	take(&a.Values, stage(a.Mixed), expr.None, isCopy)
	return used+1 == len(s.Stages) && reads(s, a.Sum, a.Exp) && reads(s, a.Largest, a.Masked)
}

// isProduct reports whether a reduction's terms are products of two loads.
func isProduct(g *schedule.Stage) bool {
	b, ok := g.Body.(*expr.Binary)
	if !ok || b.Op != expr.Mul {
		return false
	}
	return len(expr.Loads(b.A)) == 1 && len(expr.Loads(b.B)) == 1
}

// isCopy reports whether a map only moves elements, or casts them as well.
func isCopy(g *schedule.Stage) bool {
	_, isLoad := g.Body.(*expr.Load)
	return isLoad || isCast(g)
}

// isCast reports whether a map moves elements and casts them.
func isCast(g *schedule.Stage) bool {
	c, ok := g.Body.(*expr.Cast)
	if !ok {
		return false
	}
	_, ok = c.A.(*expr.Load)
	return ok
}

func reads(s *schedule.Schedule, reader, read int) bool {
	return slices.ContainsFunc(expr.Loads(s.Stages[reader].Body), func(l *expr.Load) bool { return l.Tensor == s.Stages[read].Tensor })
}

// findAxes separates batches, rows and columns.
func (a *Attention) findAxes(s *schedule.Schedule) bool {
	out := s.Stages[a.Out]
	labels := map[*expr.Var]int{}
	for k, v := range out.Axes {
		labels[v] = k
	}
	for _, id := range []int{a.Mixed, a.Total, a.Sum, a.Exp, a.Largest, a.Masked, a.Scores, a.Keys, a.Values} {
		if id < 0 {
			continue
		}
		g := s.Stages[id]
		a.Dims[id] = slices.Repeat([]int{-1}, len(out.Axes))
		for d, v := range g.Axes {
			if label, ok := SameLabel(s, g, d, labels); ok {
				labels[v] = label
				a.Dims[id][label] = d
			}
		}
	}
	a.Row, a.Column = -1, -1
	own := 0
	for k := range out.Axes {
		switch {
		case a.Dims[a.Mixed][k] < 0:
			return false
		case a.Dims[a.Scores][k] < 0:
			a.Column = k
		case a.loads(s, a.Mixed, k) == 2 && a.loads(s, a.Scores, k) == 2:
			a.Batch = append(a.Batch, k)
			own++
		default:
			if a.Row >= 0 { // queries that share keys are batches, except for their last axis
				a.Batch = append(a.Batch, a.Row)
			}
			a.Row = k
		}
	}
	slices.Sort(a.Batch)
	if n := len(a.Batch); a.Row < 0 && n > 0 {
		a.Batch, a.Row, a.Single = a.Batch[:n-1], a.Batch[n-1], true
	}
	rank := len(out.Axes)
	if a.Row < 0 || a.Column != rank-1 || len(a.Batch) != rank-2 || len(s.Stages[a.Scores].Axes) != rank || len(s.Stages[a.Total].Axes) != rank-1 {
		return false
	}
	for _, id := range []int{a.Keys, a.Values} {
		if id >= 0 {
			g := s.Stages[id]
			if len(g.Axes) != own+2 { // not a matrix, but an operand of an outer product
				return false
			}
			a.Straight[id] = MovesByOne(g, g.Axes[len(g.Axes)-1])
		}
	}
	return true
}

// loads counts the operands of a product that axis k of out moves.
func (a *Attention) loads(s *schedule.Schedule, id, k int) int {
	g, n := s.Stages[id], 0
	for _, l := range expr.Loads(g.Body) {
		if slices.ContainsFunc(l.Index, func(x expr.Expr) bool { return expr.Uses(x, g.Axes[a.Dims[id][k]]) }) {
			n++
		}
	}
	return n
}
