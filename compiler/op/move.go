package op

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// moveDef returns an operator that reads each element of its result from one place.
func moveDef(name string, minIn, maxIn int, infer func(n *Node) (Type, error),
	at func(l *Lowering, n *Node, in []Operand, i []expr.Expr) expr.Expr) Def {
	return Def{
		Name: name, Kind: Injective, MinIn: minIn, MaxIn: maxIn, Infer: infer,
		Lower: func(l *Lowering, n *Node, in []Operand) Operand {
			layouts := make([][]int, len(in))
			operands := make([]Operand, len(in))
			for k, o := range in {
				layouts[k] = o.Layout
				if n.Has(k) {
					operands[k] = l.Readable(o)
				}
			}
			return l.Lazy(n.Out, LayoutOf(n, layouts), func(i []expr.Expr) expr.Expr { return at(l, n, operands, i) })
		},
	}
}

var moveDefs = []Def{
	moveDef(Concat, 1, -1, inferConcat, concatAt).with(Traits{Concat: concatAxis}),
	moveDef(Pad, 1, 4, inferPad, padAt),
	moveDef(Expand, 2, 2, inferExpand, func(l *Lowering, n *Node, in []Operand, i []expr.Expr) expr.Expr {
		return in[0].Broadcast(n.Out.Shape, i)
	}),
	moveDef("Tile", 2, 2, inferTile, func(l *Lowering, n *Node, in []Operand, i []expr.Expr) expr.Expr {
		index := make([]expr.Expr, len(i))
		for k, e := range i {
			index[k] = expr.Bin(expr.FloorMod, e, l.Extent(n.In[0].Shape.At(k)))
		}
		return in[0].At(index...)
	}),
	moveDef("DepthToSpace", 1, 1, inferDepthToSpace, depthToSpaceAt),
	moveDef("SpaceToDepth", 1, 1, inferSpaceToDepth, spaceToDepthAt),
}

// unequalBut returns the remedy if shapes are not known to be equal on the axes but one.
func unequalBut(axis int, a, b extent.Shape) string {
	for k := range min(a.Rank(), b.Rank()) {
		if k != axis && a.At(k) != b.At(k) {
			return unequal(a.At(k), b.At(k))
		}
	}
	return ""
}

func inferConcat(n *Node) (Type, error) {
	d := Get(sameTypes(n))
	shape := n.In[0].Shape
	axis := n.axis(n.Int("axis", 1), shape.Rank())
	n.check()
	for k, v := range n.In[1:] {
		if v.Shape.Rank() != shape.Rank() || !v.Shape.With(axis, shape.At(axis)).Equal(shape) {
			return Type{}, fmt.Errorf("input %d is %v where input 0 is %v%s", k+1, v.Type, n.In[0].Type, unequalBut(axis, shape, v.Shape))
		}
		shape = shape.With(axis, shape.At(axis).Plus(v.Shape.At(axis)))
	}
	return Type{d, shape}, nil
}

func concatAxis(n *Node) int { return n.axis(n.Int("axis", 1), n.Out.Shape.Rank()) }

// concatAt selects the operand by the position on the axis, in the order of the operands.
func concatAt(l *Lowering, n *Node, in []Operand, i []expr.Expr) expr.Expr {
	axis := concatAxis(n)
	var e expr.Expr
	end := n.Out.Shape.At(axis)
	for k := len(in) - 1; k >= 0; k-- {
		size := in[k].Shape.At(axis)
		if size.Is(0) {
			continue
		}
		index := append([]expr.Expr{}, i...)
		index[axis] = expr.SubE(i[axis], l.Extent(end.Minus(size)))
		part := in[k].At(index...)
		if e == nil {
			e = part
		} else {
			e = expr.Sel(expr.Bin(expr.Lt, i[axis], l.Extent(end)), part, e)
		}
		end = end.Minus(size)
	}
	return e
}

// ZeroPads returns the amounts of a Pad that adds zeros; ok is false for others, if it crops, and if the amounts
// depend on open extents.
func ZeroPads(n *Node) (before, after []int64, ok bool) {
	if !n.Is(Pad) || n.Text("mode", "constant") != "constant" || n.Has(2) && n.In[2].Const == nil {
		return nil, nil, false
	}
	value := n.Float("value", 0)
	if n.Has(2) {
		value = n.In[2].Const.Float(0)
	}
	if value != 0 {
		return nil, nil, false
	}
	b, a := padAmounts(n)
	if pads := extent.ShapeOf(slices.Concat(b, a)...); pads.IsOpen() || slices.Min(pads.Max()) < 0 {
		return nil, nil, false
	}
	return extent.ShapeOf(b...).Fixed(), extent.ShapeOf(a...).Fixed(), true
}

// padAmounts returns a Pad's pads before and after each axis; negative ones crop.
func padAmounts(n *Node) (before, after []extent.Extent) {
	rank := n.In[0].Shape.Rank()
	before, after = make([]extent.Extent, rank), make([]extent.Extent, rank)
	list := n.ExtentsOr(1, "pads")
	axes := RowMajor(rank)
	if n.Has(3) {
		axes = nil
		for _, v := range n.KnownInts(3, "axes") {
			axes = append(axes, n.axis(v, rank))
		}
	}
	if n.err != nil || len(list) != 2*len(axes) {
		n.fail("%d pads for %d axes", len(list), len(axes))
		return before, after
	}
	for k, axis := range axes {
		before[axis], after[axis] = list[k], list[k+len(axes)]
		for _, p := range []extent.Extent{list[k], list[k+len(axes)]} {
			if p.Min() < -1<<40 || p.Max() > 1<<40 {
				n.fail("pads %v are too large", list)
			}
		}
	}
	return before, after
}

func inferPad(n *Node) (Type, error) {
	before, after := padAmounts(n)
	n.check()
	mode := n.Text("mode", "constant")
	if mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap" {
		return Type{}, fmt.Errorf("mode %q is not supported", mode)
	}
	if n.Has(2) && !n.In[2].Shape.Elements().Is(1) {
		return Type{}, fmt.Errorf("input 2 (value) is %v and no scalar", n.In[2].Type)
	}
	if n.Has(2) && n.In[2].DType != n.In[0].DType {
		return Type{}, fmt.Errorf("input 2 is %v where input 0 is %v", n.In[2].DType, n.In[0].DType)
	}
	n.Float("value", 0)
	shape := slices.Clone(n.In[0].Shape.Extents())
	for k, e := range shape {
		shape[k] = e.Plus(before[k]).Plus(after[k])
		_, rest := uncropped(e, before[k], after[k])
		short := mode == "reflect" && !before[k].Most(after[k]).Less(e.Most(extent.Of(1))) || rest.Min() <= 0 && shape[k].Max() > 0 && mode != "constant"
		if moves := !before[k].Is(0) || !after[k].Is(0); short && (moves || !e.IsOpen()) || shape[k].IsOpen() && shape[k].Min() < 0 {
			return Type{}, fmt.Errorf("axis %d of extent %v is too short for its pads", k, e)
		}
	}
	return Type{n.In[0].DType, extent.ShapeOf(shape...)}, nil
}

// uncropped returns the first index and the number of indices that negative pads leave on an axis.
func uncropped(size, before, after extent.Extent) (first, rest extent.Extent) {
	none := extent.Of(0)
	return none.Minus(before.Least(none)), size.Plus(before.Least(none)).Plus(after.Least(none))
}

func padAt(l *Lowering, n *Node, in []Operand, i []expr.Expr) expr.Expr {
	before, after := padAmounts(n)
	mode := n.Text("mode", "constant")
	fill := expr.F(n.Out.DType, n.Float("value", 0))
	if n.Has(2) {
		fill = in[2].At(zeros(in[2].Shape.Rank())...)
	}
	index := make([]expr.Expr, len(i))
	var inside expr.Expr = &expr.Int{Value: 1, Type: array.Bool}
	for k, e := range i {
		size := n.In[0].Shape.At(k)
		p := expr.SubE(e, l.Extent(before[k]))
		index[k] = p
		switch {
		case before[k].Max() <= 0 && after[k].Max() <= 0:
		case mode == "constant":
			within := expr.Bin(expr.And, expr.Bin(expr.Le, expr.I(0), p), expr.Bin(expr.Lt, p, l.Extent(size)))
			inside = expr.Bin(expr.And, inside, within)
		case mode == "edge":
			index[k] = expr.MinE(expr.MaxE(p, expr.I(0)), l.Extent(size.Minus(extent.Of(1))))
		case mode == "wrap":
			first, rest := uncropped(size, before[k], after[k])
			index[k] = expr.AddE(expr.Bin(expr.FloorMod, expr.SubE(p, l.Extent(first)), l.Extent(rest)), l.Extent(first))
		default: // reflect: |p| at the start, mirrored at the last element
			p = expr.MaxE(p, expr.SubE(expr.I(0), p))
			index[k] = expr.MinE(p, expr.SubE(l.Extent(size.Minus(extent.Of(1)).Times(extent.Of(2))), p))
		}
	}
	return expr.Sel(inside, in[0].At(index...), fill)
}

func inferExpand(n *Node) (Type, error) {
	target := n.KnownExtents(1, "shape")
	for _, e := range target {
		if e.Min() < 0 && e.IsOpen() {
			n.fail("shape %v may have a negative extent", target)
		}
	}
	n.check()
	shape, err := Broadcast(n.In[0].Shape, extent.ShapeOf(target...))
	return Type{n.In[0].DType, shape}, err
}

func inferTile(n *Node) (Type, error) {
	repeats := n.KnownExtents(1, "repeats")
	if n.err == nil && len(repeats) != n.In[0].Shape.Rank() {
		n.fail("%d repeats for %v", len(repeats), n.In[0].Type)
	}
	n.check()
	shape := slices.Clone(n.In[0].Shape.Extents())
	for k, r := range repeats {
		if r.Min() < 0 || r.Max() > 1<<32 {
			return Type{}, fmt.Errorf("repeats %v are negative or too large", repeats)
		}
		shape[k] = shape[k].Times(r)
	}
	return Type{n.In[0].DType, extent.ShapeOf(shape...)}, nil
}

func blockShape(n *Node) (shape []extent.Extent, block int64, err error) {
	shape, block = n.In[0].Shape.Extents(), n.Int("blocksize", 0)
	if len(shape) != 4 || block < 1 || block > 1<<16 {
		err = fmt.Errorf("blocksize %d does not fit %v", block, n.In[0].Type)
	}
	return shape, block, err
}

func inferDepthToSpace(n *Node) (Type, error) {
	s, b, err := blockShape(n)
	if err == nil && !s[1].Mod(extent.Of(b*b)).Is(0) {
		err = fmt.Errorf("blocksize %d does not fit %v", b, n.In[0].Type)
	}
	if err != nil {
		return Type{}, err
	}
	return Type{n.In[0].DType, extent.ShapeOf(s[0], s[1].Over(extent.Of(b*b)), s[2].Times(extent.Of(b)), s[3].Times(extent.Of(b)))}, nil
}

func depthToSpaceAt(l *Lowering, n *Node, in []Operand, i []expr.Expr) expr.Expr {
	b, channels := n.Int("blocksize", 1), l.Extent(n.Out.Shape.At(1))
	div := func(e expr.Expr) expr.Expr { return expr.Bin(expr.FloorDiv, e, expr.I(b)) }
	mod := func(e expr.Expr) expr.Expr { return expr.Bin(expr.FloorMod, e, expr.I(b)) }
	inner := expr.AddE(expr.MulE(mod(i[2]), expr.I(b)), mod(i[3]))
	c := expr.AddE(expr.MulE(inner, channels), i[1])
	if n.Text("mode", "DCR") == "CRD" {
		c = expr.AddE(expr.MulE(i[1], expr.I(b*b)), inner)
	}
	return in[0].At(i[0], c, div(i[2]), div(i[3]))
}

func inferSpaceToDepth(n *Node) (Type, error) {
	s, b, err := blockShape(n)
	if err == nil && (!s[2].Mod(extent.Of(b)).Is(0) || !s[3].Mod(extent.Of(b)).Is(0)) {
		err = fmt.Errorf("blocksize %d does not fit %v", b, n.In[0].Type)
	}
	if err != nil {
		return Type{}, err
	}
	return Type{n.In[0].DType, extent.ShapeOf(s[0], s[1].Times(extent.Of(b*b)), s[2].Over(extent.Of(b)), s[3].Over(extent.Of(b)))}, nil
}

func spaceToDepthAt(l *Lowering, n *Node, in []Operand, i []expr.Expr) expr.Expr {
	b, channels := n.Int("blocksize", 1), l.Extent(n.In[0].Shape.At(1))
	inner := expr.Bin(expr.FloorDiv, i[1], channels)
	c := expr.Bin(expr.FloorMod, i[1], channels)
	h := expr.AddE(expr.MulE(i[2], expr.I(b)), expr.Bin(expr.FloorDiv, inner, expr.I(b)))
	w := expr.AddE(expr.MulE(i[3], expr.I(b)), expr.Bin(expr.FloorMod, inner, expr.I(b)))
	return in[0].At(i[0], c, h, w)
}
