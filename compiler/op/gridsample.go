package op

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var gridSampleDefs = []Def{
	{
		Name: "GridSample", Kind: Reduction, MinIn: 2, MaxIn: 2, Label: "gridsample", Infer: inferGridSample, Lower: lowerGridSample,
		Work: func(n *Node) float64 {
			work := 10 * float64(array.Elements(n.Out.Shape.Max()))
			for range n.Out.Shape.Max()[2:] {
				work *= 2
			}
			return work
		},
	},
	moveDef("AffineGrid", 2, 2, inferAffineGrid, affineGridAt),
}

func inferGridSample(n *Node) (Type, error) {
	x, grid := n.In[0], n.In[1]
	rank := x.Shape.Rank()
	if rank < 3 || grid.Shape.Rank() != rank || !grid.DType.IsFloat() || x.DType == array.Bool ||
		grid.Shape.At(0) != x.Shape.At(0) || !grid.Shape.At(rank-1).Is(int64(rank-2)) {
		return Type{}, fmt.Errorf("grid %v does not fit input %v", grid.Type, x.Type)
	}
	if err := sampled(x.Type); err != nil {
		return Type{}, err
	}
	n.Int("align_corners", 0)
	if _, ok := gridFilters[n.Text("mode", "linear")]; !ok {
		return Type{}, fmt.Errorf("mode %q is unknown", n.Text("mode", "linear"))
	}
	if mode := n.Text("padding_mode", "zeros"); mode != "zeros" && mode != "border" && mode != "reflection" {
		return Type{}, fmt.Errorf("padding_mode %q is unknown", mode)
	}
	return Type{x.DType, extent.Concat(x.Shape.Slice(0, 2), grid.Shape.Slice(1, rank-1))}, nil
}

// sampled checks that an operand's spatial axes have elements to read in all executions, and some more axes, too.
func sampled(t Type, more ...extent.Extent) error {
	for _, e := range append(more, t.Shape.Extents()[2:]...) {
		if t.Shape.IsEmpty() || e.Min() < 1 {
			return fmt.Errorf("nothing to sample in %v%s", t, raise(e))
		}
	}
	return nil
}

// gridFilters holds the taps around the floor of a coordinate, and their weights for a given fraction. A filter
// without weights takes the nearest element.
var gridFilters = map[string]struct {
	taps   int64
	weight func(tap int64, fraction expr.Expr) expr.Expr
}{"nearest": {taps: 1}, "linear": {2, linearTap}, "bilinear": {2, linearTap}, "cubic": {4, cubicTap}, "bicubic": {4, cubicTap}}

func linearTap(tap int64, fraction expr.Expr) expr.Expr {
	if tap == 1 {
		return fraction
	}
	return expr.SubE(like(fraction, 1), fraction)
}

// cubicTap is cubicWeight with a = -0.75 at the distance of tap-1 from the fraction.
func cubicTap(tap int64, fraction expr.Expr) expr.Expr {
	const a = -0.75
	d := expr.Un(expr.Abs, expr.SubE(fraction, like(fraction, float64(tap-1))))
	if tap == 1 || tap == 2 { // ((a+2)d - (a+3))d² + 1
		return expr.AddE(expr.MulE(expr.MulE(linear(d, a+2, -(a+3)), d), d), like(d, 1))
	}
	// a(((d-5)d + 8)d - 4)
	inner := expr.AddE(expr.MulE(linear(d, 1, -5), d), like(d, 8))
	return expr.MulE(expr.SubE(expr.MulE(inner, d), like(d, 4)), like(d, a))
}

// gridAxis is one spatial axis of the sampled operand.
type gridAxis struct {
	size    count
	aligned bool
	padding string
	// wide is set if taps reach beyond the neighbours of a coordinate: inner taps then count even for a coordinate
	// outside.
	wide bool
}

// place maps a grid coordinate, -1 to 1, to one of the axis; padding by border or reflection moves it inside.
func (g gridAxis) place(e expr.Expr) expr.Expr {
	length, last := g.size, g.size.plus(-1)
	if g.aligned {
		length = last
	}
	x := expr.AddE(expr.MulE(e, length.times(e.DType(), 0.5)), last.times(e.DType(), 0.5))
	switch {
	case g.padding == "border" && !g.wide:
		return expr.MinE(expr.MaxE(x, like(x, 0)), last.as(x.DType()))
	case g.padding == "reflection":
		return g.reflect(x)
	}
	return x
}

// reflect mirrors a coordinate at the centres (aligned) or outer edges of the first and last elements.
func (g gridAxis) reflect(x expr.Expr) expr.Expr {
	low, span := -0.5, g.size
	if g.aligned {
		low, span = 0, g.size.plus(-1)
	}
	if span.of.Is(0) {
		return like(x, 0)
	}
	there := span.times(x.DType(), 2)
	t := expr.SubE(x, like(x, low))
	t = expr.SubE(t, expr.MulE(expr.Un(expr.Floor, expr.DivE(t, there)), there))
	t = expr.AddE(expr.MinE(t, expr.SubE(there, t)), like(t, low))
	if span.of.Min() < 1 {
		return expr.Sel(expr.Bin(expr.Eq, there, like(t, 0)), like(t, 0), t)
	}
	return t
}

// index returns the element at an integral coordinate, and the condition that it is within the operand.
func (g gridAxis) index(at expr.Expr) (i, inside expr.Expr) {
	inside = &expr.Int{Value: 1, Type: array.Bool}
	switch g.padding {
	case "zeros":
		inside = expr.Bin(expr.And, expr.Bin(expr.Le, like(at, 0), at), expr.Bin(expr.Le, at, g.size.plus(-1).as(at.DType())))
	case "reflection":
		at = g.reflect(at)
	}
	return g.size.nearestIndex(at), inside
}

// nearestIndex converts a coordinate on an axis with so many elements to an index; coordinates outside, and NaN, also
// give an index inside.
func (c count) nearestIndex(at expr.Expr) expr.Expr {
	at = expr.MaxE(like(at, -1), expr.MinE(c.as(at.DType()), at))
	return expr.MaxE(expr.I(0), expr.MinE(expr.To(array.Int64, at), c.l.Extent(c.plus(-1).of)))
}

// plus returns the count of n more elements.
func (c count) plus(n int64) count { return count{c.l, c.of.Plus(extent.Of(n))} }

// times returns the product of the count and a number of a floating-point type.
func (c count) times(d array.DType, by float64) expr.Expr {
	if n, ok := c.of.Const(); ok {
		return expr.F(d, float64(n)*by)
	}
	return expr.MulE(c.as(d), expr.F(d, by))
}

// tapTable lists the elements read along one axis of another value: for each element and tap an index, which is
// always inside, and a weight, which is zero for taps outside. It is computed once for all channels.
type tapTable struct{ index, weight Operand }

// at returns one tap of the element at index i.
func (t tapTable) at(i []expr.Expr, tap expr.Expr) (index, weight expr.Expr) {
	j := append(slices.Clone(i), tap)
	return t.index.At(j...), t.weight.At(j...)
}

// table tabulates the taps around a place on the axis.
func (g gridAxis) table(l *Lowering, shape extent.Shape, taps int64, weight func(int64, expr.Expr) expr.Expr, place func(i []expr.Expr) expr.Expr) tapTable {
	last := shape.Rank()
	shape = extent.Concat(shape, extent.Fixed(taps))
	layout := RowMajor(last + 1)
	tap := func(i []expr.Expr) (fraction, at expr.Expr) {
		p := place(i[:last])
		first := expr.Un(expr.Floor, p)
		if weight == nil {
			first = expr.Un(expr.Round, p)
		}
		return expr.SubE(p, first), expr.AddE(first, linear(expr.To(p.DType(), i[last]), 1, -float64((taps-1)/2)))
	}
	index := l.Map("index", shape, layout, func(i []expr.Expr) expr.Expr {
		_, at := tap(i)
		e, _ := g.index(at)
		return e
	})
	weights := l.Map("weight", shape, layout, func(i []expr.Expr) expr.Expr {
		fraction, at := tap(i)
		_, inside := g.index(at)
		w := like(fraction, 1)
		if weight != nil {
			w = weight(taps-1, fraction)
			for t := taps - 2; t >= 0; t-- {
				w = expr.Sel(expr.Bin(expr.Eq, i[last], expr.I(t)), weight(t, fraction), w)
			}
		}
		return expr.Sel(inside, w, like(w, 0))
	})
	return tapTable{index, weights}
}

// lowerGridSample sums the weighted elements around each grid position; the grid has the coordinate of the last
// axis first.
func lowerGridSample(l *Lowering, n *Node, in []Operand) Operand {
	x, grid := l.Readable(in[0]), l.Readable(in[1])
	spatial := x.Shape.Extents()[2:]
	d := wideType(n.Out.DType)
	if !d.IsFloat() {
		d = array.Float32
	}
	filter := gridFilters[n.Text("mode", "linear")]
	places := n.In[1].Shape.Slice(0, len(spatial)+1)
	var tables []tapTable
	var taps []int64
	for k, e := range spatial {
		g := gridAxis{count{l, e}, n.Int("align_corners", 0) != 0, n.Text("padding_mode", "zeros"), filter.taps > 2}
		coordinate := expr.I(int64(len(spatial) - 1 - k))
		tables = append(tables, g.table(l, places, filter.taps, filter.weight, func(i []expr.Expr) expr.Expr {
			return g.place(expr.To(d, wide(grid.At(append(slices.Clone(i), coordinate)...))))
		}))
		taps = append(taps, filter.taps)
	}
	acc := l.Reduce("gridsample", expr.Sum, n.Out.Shape, LayoutOf(n, [][]int{x.Layout, grid.Layout}), extent.Fixed(taps...), func(i, r []expr.Expr) expr.Expr {
		index := slices.Clone(i[:2])
		var weight expr.Expr
		for k, t := range tables {
			at, w := t.at(slices.Concat(i[:1], i[2:]), r[k])
			index = append(index, at)
			if weight == nil {
				weight = w
			} else {
				weight = expr.MulE(weight, w)
			}
		}
		e := expr.MulE(expr.To(d, wide(x.At(index...))), weight)
		// Infinities outside do not count.
		return expr.Sel(expr.Bin(expr.Eq, weight, like(weight, 0)), like(weight, 0), e)
	})
	return l.Lazy(n.Out, acc.Layout, func(i []expr.Expr) expr.Expr { return expr.To(n.Out.DType, acc.At(i...)) })
}

func inferAffineGrid(n *Node) (Type, error) {
	size := extent.ShapeOf(n.KnownExtents(1, "size")...)
	n.Int("align_corners", 0)
	n.check()
	d := size.Rank() - 2
	theta := n.In[0]
	if d < 2 || d > 3 || !theta.DType.IsFloat() || !theta.Shape.Equal(extent.Concat(size.Slice(0, 1), extent.Fixed(int64(d), int64(d+1)))) {
		return Type{}, fmt.Errorf("theta %v and size %v do not fit", theta.Type, size)
	}
	for _, e := range size.Extents() {
		if e.IsOpen() && e.Min() < 0 {
			return Type{}, fmt.Errorf("size %v may be negative", size)
		}
	}
	return Type{theta.DType, extent.Concat(size.Slice(0, 1), size.Slice(2, d+2), extent.Fixed(int64(d)))}, nil
}

// affineGridAt returns theta times the homogeneous coordinates of a position, that of the last axis first.
func affineGridAt(l *Lowering, n *Node, in []Operand, i []expr.Expr) expr.Expr {
	d := len(i) - 2
	row := i[len(i)-1]
	sum := wide(in[0].At(i[0], row, expr.I(int64(d))))
	for k := range d {
		axis := d - k // of the result
		p := expr.To(sum.DType(), i[axis])
		sum = expr.AddE(sum, expr.MulE(wide(in[0].At(i[0], row, expr.I(int64(k)))), l.gridCoordinate(p, n.Out.Shape.At(axis), n.Int("align_corners", 0) != 0)))
	}
	return expr.To(n.Out.DType, sum)
}

// gridCoordinate maps a position on an axis to a grid coordinate, -1 to 1.
func (l *Lowering) gridCoordinate(p expr.Expr, size extent.Extent, aligned bool) expr.Expr {
	length, fixed := size.Const()
	last := count{l, size.Minus(extent.Of(1)).Most(extent.Of(1))}
	switch {
	case aligned && fixed:
		return linear(p, 2/float64(max(1, length-1)), -1)
	case aligned:
		return linear(expr.DivE(p, last.as(p.DType())), 2, -1)
	case fixed:
		return linear(p, 2/float64(length), 1/float64(length)-1)
	}
	return expr.SubE(expr.DivE(linear(p, 2, 1), count{l, size}.as(p.DType())), like(p, 1))
}
