package vta

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Space implements backend.Backend. Workloads that the accelerator cannot compute have the schedules of processors.
func (b Backend) Space(w *expr.Workload, t *target.Target, numerics schedule.Numerics) *searchspace.Space {
	fits := true
	unfit := func() searchspace.Family {
		fits = false
		return &searchspace.Sketch[parameters]{Variants: []searchspace.Variant[parameters]{{By: searchspace.Direct, Structure: &tile{}}}}
	}
	var found *tile
	s := sketch.New(w, t, sketch.Sketches{
		Reduction: func(s *schedule.Schedule, g *schedule.Stage, u sketch.Unit) (direct, other searchspace.Family) {
			x := newTile(s, g, u)
			if x == nil || found != nil {
				return unfit(), nil
			}
			found = x
			return x.family(), nil
		},
		Map: func(*schedule.Schedule, sketch.Unit) searchspace.Family { return unfit() },
	})
	if !fits || found == nil || found.probe(s) != nil {
		return b.Backend.Space(w, t, numerics)
	}
	return s
}

// parameters are the open numbers of a tile: its rows and columns of positions, blocks of channels, and blocks of
// terms of a step; the slots of buffers; the order of tiles, with channels or positions outside; and whether weights
// stay in their scratchpad for all positions.
type parameters struct{ rows, columns, channels, depth, slots, order, resident int64 }

// tile is a sum of products that the matrix unit computes tile by tile, with an epilogue of vector instructions. The
// last axis is over channels, those before over positions. Inputs come in bytes, with terms of the last reduction axis
// next to each other; weights are constants.
type tile struct {
	unit sketch.Unit
	// constant is the index of the weights, the second factor, among the workload's constants.
	constant int
	// positions holds the extents of positions, window those of the reduction without its last axis.
	positions, window []int64
	channels, terms   int64
	// reads lists the other tensors of the epilogue.
	reads []*expr.Tensor
	// extents describes the dimensions of inputs before the last one.
	extents     []extent
	resultBytes int64
	// vectors and temporaries count the instructions of the epilogue and the buffers of its intermediate values.
	vectors, temporaries int64
}

// newTile returns the sketch of a reduction, or nil if it is not of that form.
func newTile(s *schedule.Schedule, g *schedule.Stage, u sketch.Unit) *tile {
	a, b, ok := schedule.Factors(g.Body)
	out := s.Stages[u.Out]
	switch n := len(g.Axes); {
	case !ok || g.Combiner != expr.Sum || g.Tensor.DType != array.Int32 || len(u.Also) > 0 || len(g.Reduce) == 0 || n == 0 || n != len(out.Axes):
		return nil
	case slices.ContainsFunc(slices.Concat(g.Axes, g.Reduce), func(v *expr.Var) bool { return v.Limit != nil }):
		return nil
	}
	x := &tile{unit: u, constant: slices.Index(s.Workload.Constants, b.Tensor), resultBytes: out.Tensor.DType.Bytes()}
	channel, term := g.Axes[len(g.Axes)-1], g.Reduce[len(g.Reduce)-1]
	inOrder := slices.Equal(b.Index, expr.Exprs(append(slices.Clone(g.Reduce), channel)))
	switch {
	case x.constant < 0 || a.Tensor.Role == expr.Constant || b.DType() != array.Int8 || a.DType() != array.Int8 && a.DType() != array.Uint8:
		return nil
	case !inOrder || a.Index[len(a.Index)-1] != expr.Expr(term) || expr.Uses(a, channel):
		return nil
	case len(u.Feeds) > 1 || len(u.Feeds) == 1 && !copies(s.Stages[u.Feeds[0]]):
		return nil
	}
	x.channels, x.terms = channel.Extent, term.Extent
	for _, v := range g.Axes[:len(g.Axes)-1] {
		x.positions = append(x.positions, v.Extent)
	}
	for _, v := range g.Reduce[:len(g.Reduce)-1] {
		x.window = append(x.window, v.Extent)
	}
	for _, l := range expr.Loads(out.Body) {
		if out != g && l.Tensor != g.Tensor && !slices.Contains(x.reads, l.Tensor) {
			x.reads = append(x.reads, l.Tensor)
		}
	}
	for _, i := range a.Index[:len(a.Index)-1] {
		d, ok := extentOf(i, g)
		if !ok {
			return nil
		}
		x.extents = append(x.extents, d)
	}
	return x
}

// copies reports whether a stage copies elements, or zeros where a condition fails.
func copies(g *schedule.Stage) bool {
	_, _, ok := g.Copy()
	return ok
}

// extent is how many inputs a tile reads along a dimension: those of a window, and as many as it advances by for each
// further position along an axis, or along none (-1).
type extent struct {
	axis            int
	window, advance int64
}

// extentOf analyses an index of the inputs; ok is false if it is not linear.
func extentOf(i expr.Expr, g *schedule.Stage) (d extent, ok bool) {
	d = extent{axis: -1, window: 1}
	at := expr.Linearize(i)
	for _, t := range at.Terms {
		v, isVar := t.Atom.(*expr.Var)
		k := slices.Index(g.Axes, v)
		switch {
		case !isVar || t.Coef < 0 || k >= 0 && d.axis >= 0:
			return d, false
		case k >= 0:
			d.axis, d.advance = k, t.Coef
		default:
			d.window += (v.Extent - 1) * t.Coef
		}
	}
	return d, true
}

// along returns the number of inputs for some positions along the dimension's axis.
func (d extent) along(positions int64) int64 { return (positions-1)*d.advance + d.window }
