package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Rows holds the stages of a workload that share their outer axes and reduce along the others: softmax,
// normalisation, reductions. A row is one value of all shared axes; every stage can be computed row by row.
type Rows struct {
	// Out is the last stage.
	Out int
	// Inline lists stages to inline into their consumers, Stages the others except the last, producers first.
	Inline, Stages []int
	// Shared lists the axes of the last stage that all stages have; Dims holds, for each stage, their dimensions.
	Shared []int
	Dims   map[int][]int
	// Across is set if the last stage's contiguous axis is shared, and contiguous in the inputs of the reductions.
	Across bool
	// Contiguous maps each reduction to its axis that is contiguous in memory.
	Contiguous map[int]int
	// Count is the number of rows, Length the number of elements per row.
	Count, Length int64
	// Loads counts the loads of all stages' bodies; Widest is the size of their largest type in bytes.
	Loads  int
	Widest int64
}

// MatchRows matches the rows of a workload; it returns nil if its stages do not share rows.
func MatchRows(w *expr.Workload) *Rows {
	if len(w.Outputs) != 1 {
		return nil
	}
	s := schedule.New(w)
	r := &Rows{Out: s.Producer(w.Outputs[0]).ID, Contiguous: map[int]int{}, Dims: map[int][]int{}}
	r.inlineMaps(s)
	for _, g := range s.Stages {
		if !g.Inlined && g.ID != r.Out {
			r.Stages = append(r.Stages, g.ID)
		}
		if !g.Inlined {
			r.Loads += len(expr.Loads(g.Body))
		}
	}
	r.findShared(s)
	if !r.fits(s) {
		return nil
	}
	return r
}

// inlineMaps inlines maps that are cheap to recompute per element. It keeps maps with one value per row, which cost
// nothing as stages.
func (r *Rows) inlineMaps(s *schedule.Schedule) {
	for _, g := range s.Stages {
		if g.Combiner != expr.None || g.IsOutput {
			continue
		}
		consumers := s.Consumers(g)
		keep := len(consumers) > 1 && Expensive(g.Body) || slices.ContainsFunc(consumers, func(c *schedule.Stage) bool {
			return Operations(c) > Operations(g) || expr.Size(c.Body)*expr.Size(g.Body) > MaxInlined
		})
		if !keep && s.Inline(g.ID) == nil {
			r.Inline = append(r.Inline, g.ID)
		}
	}
}

// findShared finds the axes of the last stage along which every stage is computed element by element: each consumer
// of a stage loads it at the same axis of its own.
func (r *Rows) findShared(s *schedule.Schedule) {
	out := s.Stages[r.Out]
	labels := map[*expr.Var]int{}
	for k, v := range out.Axes {
		labels[v] = k
	}
	for k := len(r.Stages) - 1; k >= 0; k-- {
		g := s.Stages[r.Stages[k]]
		for d, v := range g.Axes {
			if label, ok := SameLabel(s, g, d, labels); ok {
				labels[v] = label
			}
		}
	}
	for k, v := range out.Axes {
		shared := v.Extent > 1
		for _, id := range r.Stages {
			shared = shared && countLabel(s.Stages[id], labels, k) == 1
		}
		if shared {
			r.Shared = append(r.Shared, k)
		}
	}
	for _, id := range append(slices.Clone(r.Stages), r.Out) {
		g := s.Stages[id]
		for _, k := range r.Shared {
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

// fits reports whether each reduction has a contiguous axis, and none is a product whose operands are worth reusing.
func (r *Rows) fits(s *schedule.Schedule) bool {
	out := s.Stages[r.Out]
	last := LastLong(out.Tensor.Shape)
	r.Across = last >= 0 && slices.Contains(r.Shared, last) && r.liesAcross(s)
	r.Count, r.Length = 1, 1
	for _, k := range r.Shared {
		r.Count *= out.Axes[k].Extent
	}
	reductions := 0
	r.Widest = 1
	for _, id := range append(slices.Clone(r.Stages), r.Out) {
		g := s.Stages[id]
		r.Length = max(r.Length, int64(Operations(g))/r.Count)
		r.Widest = max(r.Widest, g.Tensor.DType.Bytes())
		if g.Combiner == expr.None {
			continue
		}
		reductions++
		if !r.reductionFits(g) {
			return false
		}
	}
	// A single reduction with contiguous rows belongs to the sketch of register tiles.
	return reductions > 0 && (!r.Across || reductions > 1)
}

// liesAcross reports whether the inputs of the reductions are contiguous along the last shared axis. That does not
// hold if each reduces its own rows to an element.
func (r *Rows) liesAcross(s *schedule.Schedule) bool {
	for _, id := range append(slices.Clone(r.Stages), r.Out) {
		g := s.Stages[id]
		dims := r.Dims[id]
		if g.Combiner != expr.None && !MovesByOne(g, g.Axes[dims[len(dims)-1]]) {
			return false
		}
	}
	return true
}

// reductionFits finds the contiguous axis of a reduction.
func (r *Rows) reductionFits(g *schedule.Stage) bool {
	for _, l := range expr.Loads(g.Body) {
		if rereads(g, l) {
			return false
		}
	}
	if r.Across {
		return true
	}
	for k := len(g.Reduce) - 1; k >= 0; k-- {
		if g.Reduce[k].Extent > 1 && MovesByOne(g, g.Reduce[k]) {
			r.Contiguous[g.ID] = k
			return true
		}
	}
	return false
}

// rereads reports whether a load has more elements than a row and the reduction reads them more than once, or
// whether packing them would pay, as for constants. Such reductions belong to the sketch of register tiles.
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
	overlap := func(x expr.Expr) bool { return UsesAny(x, g.Axes) && UsesAny(x, g.Reduce) }
	return l.Tensor.Role == expr.Constant || slices.ContainsFunc(g.Axes, idle) || slices.ContainsFunc(l.Index, overlap)
}
