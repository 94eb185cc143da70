package rowwise

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch/nest"
	"github.com/tilth-dev/tilth/compiler/target"
)

// rows is the sketch of stages that share their outer axes and reduce along the others: softmax, normalisation,
// reductions. A row is one value of all shared axes; every stage is computed row by row, so that a row is read from
// memory once while it fits the cache.
//
//	parallel over rows
//	  for each stage but the last, producers first
//	    a reduction: partial results in acc vectors, combined in the end     rfactor
//	    a map: the row in a scratch buffer                                   unroll vectors at a time
//	  the last stage's row
//
// Where the contiguous axis is itself shared, as when the channels of an image are normalised for each pixel, a row is
// as many vectors wide as acc says, and reductions need no partial results.
//
// Rows that are too few for the workers and long are cut into pieces: each stage is a parallel nest of its own, and a
// reduction keeps a partial result for each piece.
type rows struct {
	target *target.Target
	out    int
	// inline are stages that disappear into their consumers, stages the others but the last, producers first.
	inline, stages []int
	// shared are the axes of the last stage that all stages have.
	shared []int
	Nests
	// across is set where the last stage's contiguous axis is shared, and contiguous in what the reductions read.
	across bool
	// contiguous is the reduction axis that is contiguous in memory, for each reduction.
	contiguous map[int]int
	// count is the number of rows, length the elements that one has.
	count, length int64
	loads         int
}

// Parameters are the numbers that the sketch leaves open.
type Parameters struct {
	// Partials is how many vectors hold a reduction's partial results, or how many vectors wide a row is.
	Partials int64
	// Unroll is how many vectors of a map are computed at a time.
	Unroll int64
}

// New is the schedules of a workload; nil when its stages do not follow the sketch.
func New(w *expr.Workload, t *target.Target) *nest.Whole {
	r := newRows(w, t)
	if r == nil {
		return nil
	}
	return &nest.Whole{Out: r.out, Inline: r.inline, Family: r.family()}
}

func newRows(w *expr.Workload, t *target.Target) *rows {
	if len(w.Outputs) != 1 {
		return nil
	}
	s := schedule.New(w)
	r := &rows{target: t, out: s.Producer(w.Outputs[0]).ID, contiguous: map[int]int{}, Nests: Nests{Dims: map[int][]int{}}}
	r.inlineMaps(s)
	for _, g := range s.Stages {
		if !g.Inlined && g.ID != r.out {
			r.stages = append(r.stages, g.ID)
		}
		if !g.Inlined {
			r.loads += len(expr.Loads(g.Body))
		}
	}
	r.findShared(s)
	if !r.fits(s, t) {
		return nil
	}
	return r
}

// inlineMaps inlines what is cheap to compute again for each element. A map that has one value for a whole row is not:
// it costs nothing as a stage.
func (r *rows) inlineMaps(s *schedule.Schedule) {
	for _, g := range s.Stages {
		if g.Combiner != expr.None || g.IsOutput {
			continue
		}
		consumers := s.Consumers(g)
		keep := len(consumers) > 1 && nest.Expensive(g.Body) || slices.ContainsFunc(consumers, func(c *schedule.Stage) bool {
			return nest.Operations(c) > nest.Operations(g) || expr.Size(c.Body)*expr.Size(g.Body) > nest.MaxInlined
		})
		if !keep && s.Inline(g.ID) == nil {
			r.inline = append(r.inline, g.ID)
		}
	}
}

// findShared finds the axes of the last stage along which every stage is computed element by element: whatever loads a
// stage does so at the same axis of its own.
func (r *rows) findShared(s *schedule.Schedule) {
	out := s.Stages[r.out]
	labels := map[*expr.Var]int{}
	for k, v := range out.Axes {
		labels[v] = k
	}
	for k := len(r.stages) - 1; k >= 0; k-- {
		g := s.Stages[r.stages[k]]
		for d, v := range g.Axes {
			if label, ok := nest.SameLabel(s, g, d, labels); ok {
				labels[v] = label
			}
		}
	}
	for k, v := range out.Axes {
		shared := v.Extent > 1
		for _, id := range r.stages {
			shared = shared && countLabel(s.Stages[id], labels, k) == 1
		}
		if shared {
			r.shared = append(r.shared, k)
		}
	}
	for _, id := range append(slices.Clone(r.stages), r.out) {
		g := s.Stages[id]
		for _, k := range r.shared {
			r.Dims[id] = append(r.Dims[id], slices.IndexFunc(g.Axes, func(v *expr.Var) bool { return isLabel(labels, v, k) }))
		}
	}
}

func isLabel(labels map[*expr.Var]int, v *expr.Var, label int) bool {
	found, ok := labels[v]
	return ok && found == label
}

func countLabel(g *schedule.Stage, labels map[*expr.Var]int, label int) int {
	n := 0
	for _, v := range g.Axes {
		if isLabel(labels, v, label) {
			n++
		}
	}
	return n
}

// fits reports whether every stage can be vectorized, and no reduction is a product whose operands are worth reusing.
func (r *rows) fits(s *schedule.Schedule, t *target.Target) bool {
	out := s.Stages[r.out]
	last := -1
	for k, v := range out.Axes {
		if v.Extent > 1 {
			last = k
		}
	}
	r.across = last >= 0 && slices.Contains(r.shared, last) && r.liesAcross(s)
	r.count, r.length = 1, 1
	for _, k := range r.shared {
		r.count *= out.Axes[k].Extent
	}
	reductions, widest := 0, int64(1)
	for _, id := range append(slices.Clone(r.stages), r.out) {
		g := s.Stages[id]
		r.length = max(r.length, int64(nest.Operations(g))/r.count)
		widest = max(widest, g.Tensor.DType.Bytes())
		if g.Combiner == expr.None {
			continue
		}
		reductions++
		if !r.reductionFits(g) {
			return false
		}
	}
	r.Lanes = max(1, int64(t.CPU.VectorBytes)/widest)
	// A single reduction for which rows are contiguous is what the sketch of register tiles is made for.
	return reductions > 0 && (!r.across || reductions > 1)
}

// liesAcross reports whether what the reductions read is contiguous along the last of the shared axes: not so where
// each reduces its own rows to an element.
func (r *rows) liesAcross(s *schedule.Schedule) bool {
	for _, id := range append(slices.Clone(r.stages), r.out) {
		g := s.Stages[id]
		dims := r.Dims[id]
		if g.Combiner != expr.None && !nest.MovesByOne(g, g.Axes[dims[len(dims)-1]]) {
			return false
		}
	}
	return true
}

// reductionFits finds the contiguous axis of a reduction.
func (r *rows) reductionFits(g *schedule.Stage) bool {
	for _, l := range expr.Loads(g.Body) {
		if rereads(g, l) {
			return false
		}
	}
	if r.across {
		return true
	}
	for k := len(g.Reduce) - 1; k >= 0; k-- {
		if g.Reduce[k].Extent > 1 && nest.MovesByOne(g, g.Reduce[k]) {
			r.contiguous[g.ID] = k
			return true
		}
	}
	return false
}

// rereads reports whether a load has more elements than a row and the reduction reads them more than once, or packing
// them would pay, as that of constants does: what the sketch of register tiles is made for.
func rereads(g *schedule.Stage, l *expr.Load) bool {
	length := int64(1)
	for _, v := range g.Reduce {
		length *= v.Extent
	}
	if array.Elements(l.Tensor.Shape) <= length {
		return false
	}
	idle := func(v *expr.Var) bool {
		return v.Extent > 1 && !slices.ContainsFunc(l.Index, func(x expr.Expr) bool { return expr.Uses(x, v) })
	}
	overlap := func(x expr.Expr) bool { return nest.UsesAny(x, g.Axes) && nest.UsesAny(x, g.Reduce) }
	return l.Tensor.Role == expr.Constant || slices.ContainsFunc(g.Axes, idle) || slices.ContainsFunc(l.Index, overlap)
}
