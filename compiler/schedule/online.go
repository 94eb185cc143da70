package schedule

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// Online computes the softmax that a sum of products reads piece by piece, without materialising a row (Milakov and
// Gimelshein, "Online normalizer calculation for softmax", 2018). The given stage is
//
//	mixed = sum over r of exp(x[r] - largest) * value[r]
//
// alongside the sum of exp(x[r] - largest). Afterwards the reduction has two axes, over pieces and within a piece.
// Each piece has exponentials relative to the largest x so far, and mixed is rescaled accordingly before it adds a
// piece. The stages of a row's maxima and sums may then be computed in the loop over pieces, and are read after it.
// Online must precede other primitives on these stages.
func (s *Schedule) Online(stageID int, piece int64) (made *OnlineStages, err error) {
	err = s.change("online", stageID, []int{int(piece)}, func(mixed *Stage) error {
		f, ok := s.softmaxOf(mixed)
		switch {
		case !ok:
			return fmt.Errorf("stage %d is not a sum of products with a softmax", stageID)
		case piece < 1 || piece > f.terms:
			return fmt.Errorf("pieces of %d are not between 1 and the %d terms of stage %d", piece, f.terms, stageID)
		}
		for _, g := range []*Stage{f.mixed, f.exp, f.largest, f.sum} {
			if s.scheduled(g) || g.IsOutput {
				return fmt.Errorf("stage %d was already scheduled, or is an output", g.ID)
			}
		}
		made = f.online(s, piece)
		return nil
	})
	return made, err
}

// OnlineStages holds the numbers of the stages that Online creates. All but Exp and Value have an element for each
// row and piece.
type OnlineStages struct {
	// Largest is the largest x of each piece, Running the largest of all pieces so far, Sum the sum of a piece's
	// exponentials.
	Largest, Running, Sum int
	// Change is the factor applied to mixed before it adds a piece.
	Change int
	// Exp holds the exponentials of each piece, Value their factors, zero beyond the end.
	Exp, Value int
}

// softmax holds the stages that Online divides.
type softmax struct {
	mixed, exp, largest, sum *Stage
	// x is the argument of the exponential before the maximum is subtracted, in terms of exp's axes; along is the
	// position of the axis of the maximum.
	x     expr.Expr
	along int
	// load and value are the factors of mixed, where load reads exp; second is set if they are swapped.
	load   *expr.Load
	value  *expr.Load
	cast   bool
	second bool
	terms  int64
}

// softmaxOf matches the stages of a softmax, given the sum of products that reads it.
func (s *Schedule) softmaxOf(mixed *Stage) (f *softmax, ok bool) {
	a, b, ok := Factors(mixed.Body)
	if !ok || mixed.Combiner != expr.Sum || len(mixed.Reduce) != 1 || mixed.Decay != nil {
		return nil, false
	}
	for _, second := range []bool{false, true} {
		f := &softmax{mixed: mixed, load: a, value: b, second: second, terms: mixed.Reduce[0].Extent}
		if second {
			f.load, f.value = b, a
		}
		if f.exp = s.Producer(f.load.Tensor); f.exp != nil && s.completes(f) {
			return f, true
		}
	}
	return nil, false
}

// completes finds the other stages, given exp.
func (s *Schedule) completes(f *softmax) bool {
	e, isExp := f.exp.Body.(*expr.Unary)
	if !isExp || e.Op != expr.Exp || f.exp.Combiner != expr.None || !f.exp.Tensor.DType.IsFloat() {
		return false
	}
	difference, isBinary := e.A.(*expr.Binary)
	if !isBinary || difference.Op != expr.Sub {
		return false
	}
	shift := difference.B
	if m, ok := shift.(*expr.Binary); ok && m.Op == expr.Max && expr.Same(m.B, expr.LowestFinite(m.DType())) {
		shift = m.A // Online has that bound anyway
	}
	l, isLoad := shift.(*expr.Load)
	if !isLoad || f.load.DType() != f.mixed.Tensor.DType || f.value.Tensor == f.exp.Tensor {
		return false
	}
	f.x, f.largest = difference.A, s.Producer(l.Tensor)
	f.cast = f.value.DType() != f.load.DType()
	return f.findAxis(l) && f.findSum(s) && f.readsRows() && onlyRead(s, f.largest, f.exp) && onlyRead(s, f.exp, f.mixed, f.sum)
}

// onlyRead reports whether only the given stages read g.
func onlyRead(s *Schedule, g *Stage, by ...*Stage) bool {
	return !slices.ContainsFunc(s.Consumers(g), func(c *Stage) bool { return !slices.Contains(by, c) })
}

// findAxis finds the axis of exp along which largest is the maximum of x.
func (f *softmax) findAxis(l *expr.Load) bool {
	g := f.largest
	if g == nil || g.Combiner != expr.Maximum || len(g.Reduce) != 1 || len(g.Axes) != len(f.exp.Axes)-1 {
		return false
	}
	f.along = len(f.exp.Axes) - 1
	for k, v := range f.exp.Axes {
		if k == len(l.Index) || l.Index[k] != expr.Expr(v) {
			f.along = k
			break
		}
	}
	kept := f.rows(f.exp.Axes)
	same := map[*expr.Var]expr.Expr{g.Reduce[0]: f.exp.Axes[f.along]}
	for k, v := range g.Axes {
		if l.Index[k] != expr.Expr(kept[k]) {
			return false
		}
		same[v] = kept[k]
	}
	return f.whole(g) && expr.Same(expr.Substitute(g.Body, same), f.x)
}

// rows returns the axes of exp except that of the maximum.
func (f *softmax) rows(axes []*expr.Var) []*expr.Var {
	return slices.Delete(slices.Clone(axes), f.along, f.along+1)
}

// element returns the index of an element of exp.
func (f *softmax) element(row []expr.Expr, along expr.Expr) []expr.Expr {
	return slices.Insert(slices.Clone(row), f.along, along)
}

// findSum finds the sum of a row's exponentials.
func (f *softmax) findSum(s *Schedule) bool {
	for _, c := range s.Consumers(f.exp) {
		l, isLoad := c.Body.(*expr.Load)
		if !isLoad || c.Combiner != expr.Sum || len(c.Reduce) != 1 || !f.whole(c) || len(c.Axes) != len(f.exp.Axes)-1 {
			continue
		}
		if slices.EqualFunc(l.Index, f.element(expr.Exprs(c.Axes), c.Reduce[0]), expr.Same) {
			f.sum = c
			return true
		}
	}
	return false
}

// whole reports whether a stage reduces the full row, not only a prefix.
func (f *softmax) whole(g *Stage) bool {
	return g.Reduce[0].Extent == f.exp.Axes[f.along].Extent && sameLimit(g.Reduce[0], f.mixed.Reduce[0])
}

// readsRows reports whether mixed reads a row's exponentials in order, and rows by its own axes.
func (f *softmax) readsRows() bool {
	if !f.whole(f.mixed) {
		return false
	}
	for k, x := range f.load.Index {
		v, isVar := x.(*expr.Var)
		if !isVar || (k == f.along) != (v == f.mixed.Reduce[0]) || k != f.along && !slices.Contains(f.mixed.Axes, v) {
			return false
		}
	}
	return true
}

// online creates the stages that process a row piece by piece.
func (f *softmax) online(s *Schedule, piece int64) *OnlineStages {
	d := f.exp.Tensor.DType
	rows := f.largest.Tensor.Shape
	pieces := (f.terms + piece - 1) / piece
	shape := append(slices.Clone(rows), pieces)
	at := func(p, j expr.Expr) expr.Expr { return expr.AddE(expr.MulE(p, expr.I(piece)), j) }
	limit := f.mixed.Reduce[0].Limit
	within := func(p, j, value, beyond expr.Expr) expr.Expr {
		if limit != nil {
			value = expr.Sel(expr.Bin(expr.Lt, at(p, j), limit), value, beyond)
		}
		if f.terms%piece == 0 {
			return value
		}
		return expr.Sel(expr.Bin(expr.Lt, at(p, j), expr.I(f.terms)), value, beyond)
	}
	last := expr.I(pieces - 1)
	var needed expr.Expr
	if limit != nil {
		last = expr.MaxE(expr.I(0), expr.Bin(expr.FloorDiv, expr.SubE(limit, expr.I(1)), expr.I(piece)))
		needed = expr.Bin(expr.FloorDiv, expr.AddE(limit, expr.I(piece-1)), expr.I(piece))
	}
	x := func(row []expr.Expr, p, j expr.Expr) expr.Expr {
		values := map[*expr.Var]expr.Expr{}
		for k, e := range f.element(row, at(p, j)) {
			values[f.exp.Axes[k]] = e
		}
		return expr.Substitute(f.x, values)
	}
	n := len(rows)
	largest := s.added(expr.ReduceOver(f.largest.Tensor.Name+"_piece", expr.Maximum, shape, []int64{piece}, func(i, r []expr.Expr) expr.Expr {
		return within(i[n], r[0], x(i[:n], i[n], r[0]), expr.Maximum.Identity(d))
	}))
	// At least the lowest finite number, so that no difference is one of infinities.
	smallest := expr.LowestFinite(d)
	running := s.keep(f, expr.Compute(f.largest.Tensor.Name+"_running", shape, func(i []expr.Expr) expr.Expr {
		return expr.MaxE(largest.Tensor.At(i...), smallest)
	}))
	running.Body = expr.MaxE(running.Body, expr.Sel(isLater(running.Axes[n]), before(running, expr.Exprs(running.Axes)), smallest))
	exp := s.added(expr.Compute(f.exp.Tensor.Name, append(slices.Clone(shape), piece), func(i []expr.Expr) expr.Expr {
		difference := expr.SubE(x(i[:n], i[n], i[n+1]), running.Tensor.At(i[:n+1]...))
		return within(i[n], i[n+1], expr.Un(expr.Exp, difference), expr.Zero(d))
	}))
	sum := s.keep(f, expr.ReduceOver(f.sum.Tensor.Name+"_piece", expr.Sum, shape, []int64{piece}, func(i, r []expr.Expr) expr.Expr {
		return exp.Tensor.At(append(slices.Clone(i), r[0])...)
	}))
	change := s.added(expr.Compute("change", shape, func(i []expr.Expr) expr.Expr {
		now := running.Tensor.At(i...)
		return expr.Un(expr.Exp, expr.SubE(expr.Sel(isLater(i[n]), before(running, i), now), now))
	}))
	value, values := f.values(piece, pieces, within)
	factors := s.added(value)
	f.mix(piece, pieces, exp, change, values)
	f.total(pieces, running, sum, last)
	f.mixed.Reduce[0].Limit, f.sum.Reduce[0].Limit = needed, needed
	f.exp.Inlined, f.largest.Inlined = true, true
	return &OnlineStages{Largest: largest.ID, Running: running.ID, Sum: sum.ID, Change: change.ID, Exp: exp.ID, Value: factors.ID}
}

// isLater returns the condition that a piece is not the first one.
func isLater(piece expr.Expr) expr.Expr { return expr.Bin(expr.Lt, expr.I(0), piece) }

// before returns a stage's element of the same row, one piece earlier.
func before(g *Stage, index []expr.Expr) expr.Expr {
	at := slices.Clone(index)
	last := len(at) - 1
	at[last] = expr.SubE(at[last], expr.I(1))
	return g.Tensor.At(at...)
}

// keep adds a stage over rows and pieces that is kept whole while the loop over pieces computes it.
func (s *Schedule) keep(f *softmax, t *expr.Tensor) *Stage {
	g := s.added(t)
	g.Kept = f.mixed
	for k, x := range f.load.Index {
		if k != f.along {
			g.KeptAxes = append(g.KeptAxes, slices.IndexFunc(f.mixed.Axes, func(v *expr.Var) bool { return x == expr.Expr(v) }))
		}
	}
	return g
}

// values returns the computation of the factors of exponentials: its axes are the pieces, and those of mixed that the
// factors depend on, with pieces before the last one.
func (f *softmax) values(piece, pieces int64, within func(p, j, value, beyond expr.Expr) expr.Expr) (t *expr.Tensor, at func(axes []expr.Expr, p, j expr.Expr) expr.Expr) {
	var used []int
	var shape []int64
	for k, v := range f.mixed.Axes {
		if expr.Uses(f.value, v) {
			used = append(used, k)
			shape = append(shape, v.Extent)
		}
	}
	place := max(0, len(used)-1)
	t = expr.Compute(f.value.Tensor.Name+"_piece", slices.Insert(shape, place, pieces, piece), func(i []expr.Expr) expr.Expr {
		p, j := i[place], i[place+1]
		own := slices.Delete(slices.Clone(i), place, place+2)
		to := map[*expr.Var]expr.Expr{f.mixed.Reduce[0]: expr.AddE(expr.MulE(p, expr.I(piece)), j)}
		for k, a := range used {
			to[f.mixed.Axes[a]] = own[k]
		}
		return within(p, j, expr.Substitute(f.value, to), expr.Zero(f.value.DType()))
	})
	return t, func(axes []expr.Expr, p, j expr.Expr) expr.Expr {
		var own []expr.Expr
		for _, a := range used {
			own = append(own, axes[a])
		}
		return t.At(slices.Insert(own, place, p, j)...)
	}
}

// mix makes mixed accumulate pieces.
func (f *softmax) mix(piece, pieces int64, exp, change *Stage, value func(axes []expr.Expr, p, j expr.Expr) expr.Expr) {
	g := f.mixed
	row := func(axes []expr.Expr) (at []expr.Expr) {
		for k, x := range f.load.Index {
			if k != f.along {
				at = append(at, axes[slices.IndexFunc(g.Axes, func(v *expr.Var) bool { return x == expr.Expr(v) })])
			}
		}
		return at
	}
	var decay expr.Expr
	t := expr.ReduceOver(g.Tensor.Name, expr.Sum, g.Tensor.Shape, []int64{pieces, piece}, func(i, r []expr.Expr) expr.Expr {
		decay = change.Tensor.At(append(row(i), r[0])...)
		weight := exp.Tensor.At(append(row(i), r...)...)
		factor := value(i, r[0], r[1])
		if f.cast {
			factor = expr.To(weight.DType(), factor)
		}
		if f.second {
			return expr.MulE(factor, weight)
		}
		return expr.MulE(weight, factor)
	})
	limited(t.Axes, g.Axes)
	g.Axes, g.Reduce, g.Body, g.Decay = t.Axes, t.Reduce, t.Body, decay
	g.resetNest()
}

// total makes the sum of a row's exponentials accumulate those of its pieces.
func (f *softmax) total(pieces int64, running, sum *Stage, last expr.Expr) {
	g := f.sum
	t := expr.ReduceOver(g.Tensor.Name, expr.Sum, g.Tensor.Shape, []int64{pieces}, func(i, r []expr.Expr) expr.Expr {
		of := func(p expr.Expr) expr.Expr { return running.Tensor.At(append(slices.Clone(i), p)...) }
		return expr.MulE(sum.Tensor.At(append(slices.Clone(i), r[0])...), expr.Un(expr.Exp, expr.SubE(of(r[0]), of(last))))
	})
	limited(t.Axes, g.Axes)
	g.Axes, g.Reduce, g.Body = t.Axes, t.Reduce, t.Body
	g.resetNest()
}
