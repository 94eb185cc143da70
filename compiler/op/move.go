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
	at func(n *Node, in []Operand, i []expr.Expr) expr.Expr) Def {
	return Def{
		Name: name, Kind: Injective, MinIn: minIn, MaxIn: maxIn, Infer: infer,
		Lower: func(l *Lowering, n *Node, in []Operand) (Operand, error) {
			layouts := make([][]int, len(in))
			operands := make([]Operand, len(in))
			for k, o := range in {
				layouts[k] = o.Layout
				if n.Has(k) {
					operands[k] = l.Readable(o)
				}
			}
			return l.Lazy(n.Out, LayoutOf(n, layouts), func(i []expr.Expr) expr.Expr { return at(n, operands, i) }), nil
		},
	}
}

var moveDefs = []Def{
	moveDef(Concat, 1, -1, inferConcat, concatAt).with(Traits{Concat: concatAxis}),
	moveDef(Pad, 1, 4, inferPad, padAt),
	moveDef(Expand, 2, 2, inferExpand, func(n *Node, in []Operand, i []expr.Expr) expr.Expr {
		return in[0].Broadcast(n.Out.Shape.Fixed(), i)
	}),
	moveDef("Tile", 2, 2, inferTile, func(n *Node, in []Operand, i []expr.Expr) expr.Expr {
		index := make([]expr.Expr, len(i))
		for k, e := range i {
			index[k] = expr.Bin(expr.FloorMod, e, expr.I(n.In[0].Shape.Fixed()[k]))
		}
		return in[0].At(index...)
	}),
	moveDef("DepthToSpace", 1, 1, inferDepthToSpace, depthToSpaceAt),
	moveDef("SpaceToDepth", 1, 1, inferSpaceToDepth, spaceToDepthAt),
}

func inferConcat(n *Node) (Type, error) {
	d, err := sameTypes(n)
	if err != nil {
		return Type{}, err
	}
	shape := append([]int64{}, n.In[0].Shape.Fixed()...)
	axis := n.axis(n.Int("axis", 1), len(shape))
	if n.err != nil {
		return Type{}, n.err
	}
	for k, v := range n.In[1:] {
		if v.Shape.Rank() != len(shape) {
			return Type{}, fmt.Errorf("input %d is %v where input 0 is %v", k+1, v.Type, n.In[0].Type)
		}
		for j := range shape {
			if j != axis && v.Shape.Fixed()[j] != shape[j] {
				return Type{}, fmt.Errorf("input %d is %v where input 0 is %v", k+1, v.Type, n.In[0].Type)
			}
		}
		shape[axis] += v.Shape.Fixed()[axis]
	}
	return Type{d, extent.Fixed(shape...)}, nil
}

func concatAxis(n *Node) int { return n.axis(n.Int("axis", 1), n.Out.Shape.Rank()) }

// concatAt selects the operand by the position on the axis, in the order of the operands.
func concatAt(n *Node, in []Operand, i []expr.Expr) expr.Expr {
	axis := concatAxis(n)
	var e expr.Expr
	end := n.Out.Shape.Fixed()[axis]
	for k := len(in) - 1; k >= 0; k-- {
		extent := in[k].Shape.Fixed()[axis]
		if extent == 0 {
			continue
		}
		index := append([]expr.Expr{}, i...)
		index[axis] = expr.SubE(i[axis], expr.I(end-extent))
		part := in[k].At(index...)
		if e == nil {
			e = part
		} else {
			e = expr.Sel(expr.Bin(expr.Lt, i[axis], expr.I(end)), part, e)
		}
		end -= extent
	}
	return e
}

// ZeroPads returns the amounts of a Pad that adds zeros; ok is false for others, and if it crops.
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
	before, after = padAmounts(n)
	return before, after, slices.Min(slices.Concat(before, after)) >= 0
}

// padAmounts returns a Pad's pads before and after each axis; negative ones crop.
func padAmounts(n *Node) (before, after []int64) {
	rank := n.In[0].Shape.Rank()
	before, after = make([]int64, rank), make([]int64, rank)
	list := n.IntsOr(1, "pads")
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
		if max(list[k], -list[k], list[k+len(axes)], -list[k+len(axes)]) > 1<<40 {
			n.fail("pads %v are too large", list)
		}
	}
	return before, after
}

func inferPad(n *Node) (Type, error) {
	before, after := padAmounts(n)
	if n.err != nil {
		return Type{}, n.err
	}
	mode := n.Text("mode", "constant")
	if mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap" {
		return Type{}, fmt.Errorf("mode %q is not supported", mode)
	}
	if n.Has(2) && array.Elements(n.In[2].Shape.Fixed()) != 1 {
		return Type{}, fmt.Errorf("input 2 (value) is %v and no scalar", n.In[2].Type)
	}
	if n.Has(2) && n.In[2].DType != n.In[0].DType {
		return Type{}, fmt.Errorf("input 2 is %v where input 0 is %v", n.In[2].DType, n.In[0].DType)
	}
	n.Float("value", 0)
	shape := append([]int64{}, n.In[0].Shape.Fixed()...)
	for k, e := range shape {
		shape[k] = e + before[k] + after[k]
		_, cropped := uncropped(e, before[k], after[k])
		if mode == "reflect" && max(before[k], after[k]) >= max(e, 1) || cropped <= 0 && shape[k] > 0 && mode != "constant" {
			return Type{}, fmt.Errorf("axis %d of extent %d is too short for its pads", k, e)
		}
	}
	return Type{n.In[0].DType, extent.Fixed(shape...)}, nil
}

// uncropped returns the first index and the number of indices that negative pads leave on an axis.
func uncropped(extent, before, after int64) (first, rest int64) {
	return -min(before, 0), extent + min(before, 0) + min(after, 0)
}

func padAt(n *Node, in []Operand, i []expr.Expr) expr.Expr {
	before, after := padAmounts(n)
	mode := n.Text("mode", "constant")
	fill := expr.F(n.Out.DType, n.Float("value", 0))
	if n.Has(2) {
		fill = in[2].At(zeros(in[2].Shape.Rank())...)
	}
	index := make([]expr.Expr, len(i))
	var inside expr.Expr = &expr.Int{Value: 1, Type: array.Bool}
	for k, e := range i {
		p, extent := expr.SubE(e, expr.I(before[k])), n.In[0].Shape.Fixed()[k]
		index[k] = p
		switch {
		case before[k] <= 0 && after[k] <= 0:
		case mode == "constant":
			inside = expr.Bin(expr.And, inside, expr.InRange(p, 0, extent))
		case mode == "edge":
			index[k] = expr.MinE(expr.MaxE(p, expr.I(0)), expr.I(extent-1))
		case mode == "wrap":
			first, rest := uncropped(extent, before[k], after[k])
			index[k] = expr.AddE(expr.Bin(expr.FloorMod, expr.SubE(p, expr.I(first)), expr.I(rest)), expr.I(first))
		default: // reflect: |p| at the start, mirrored at the last element
			p = expr.MaxE(p, expr.SubE(expr.I(0), p))
			index[k] = expr.MinE(p, expr.SubE(expr.I(2*(extent-1)), p))
		}
	}
	return expr.Sel(inside, in[0].At(index...), fill)
}

func inferExpand(n *Node) (Type, error) {
	target := n.KnownInts(1, "shape")
	if n.err != nil {
		return Type{}, n.err
	}
	shape, err := Broadcast(n.In[0].Shape.Fixed(), target)
	return Type{n.In[0].DType, extent.Fixed(shape...)}, err
}

func inferTile(n *Node) (Type, error) {
	repeats := n.KnownInts(1, "repeats")
	if n.err == nil && len(repeats) != n.In[0].Shape.Rank() {
		n.fail("%d repeats for %v", len(repeats), n.In[0].Type)
	}
	if n.err != nil {
		return Type{}, n.err
	}
	shape := append([]int64{}, n.In[0].Shape.Fixed()...)
	for k, r := range repeats {
		if r < 0 || r > 1<<32 {
			return Type{}, fmt.Errorf("repeats %v are negative or too large", repeats)
		}
		shape[k] *= r
	}
	return Type{n.In[0].DType, extent.Fixed(shape...)}, nil
}

func blockShape(n *Node) (shape []int64, block int64, err error) {
	shape, block = n.In[0].Shape.Fixed(), n.Int("blocksize", 0)
	if len(shape) != 4 || block < 1 || block > 1<<16 {
		err = fmt.Errorf("blocksize %d does not fit %v", block, n.In[0].Type)
	}
	return shape, block, err
}

func inferDepthToSpace(n *Node) (Type, error) {
	s, b, err := blockShape(n)
	if err == nil && s[1]%(b*b) != 0 {
		err = fmt.Errorf("blocksize %d does not fit %v", b, n.In[0].Type)
	}
	if err != nil {
		return Type{}, err
	}
	return Type{n.In[0].DType, extent.Fixed(s[0], s[1]/(b*b), s[2]*b, s[3]*b)}, nil
}

func depthToSpaceAt(n *Node, in []Operand, i []expr.Expr) expr.Expr {
	b, channels := n.Int("blocksize", 1), n.Out.Shape.Fixed()[1]
	div := func(e expr.Expr) expr.Expr { return expr.Bin(expr.FloorDiv, e, expr.I(b)) }
	mod := func(e expr.Expr) expr.Expr { return expr.Bin(expr.FloorMod, e, expr.I(b)) }
	inner := expr.AddE(expr.MulE(mod(i[2]), expr.I(b)), mod(i[3]))
	c := expr.AddE(expr.MulE(inner, expr.I(channels)), i[1])
	if n.Text("mode", "DCR") == "CRD" {
		c = expr.AddE(expr.MulE(i[1], expr.I(b*b)), inner)
	}
	return in[0].At(i[0], c, div(i[2]), div(i[3]))
}

func inferSpaceToDepth(n *Node) (Type, error) {
	s, b, err := blockShape(n)
	if err == nil && (s[2]%b != 0 || s[3]%b != 0) {
		err = fmt.Errorf("blocksize %d does not fit %v", b, n.In[0].Type)
	}
	if err != nil {
		return Type{}, err
	}
	return Type{n.In[0].DType, extent.Fixed(s[0], s[1]*b*b, s[2]/b, s[3]/b)}, nil
}

func spaceToDepthAt(n *Node, in []Operand, i []expr.Expr) expr.Expr {
	b, channels := n.Int("blocksize", 1), n.In[0].Shape.Fixed()[1]
	inner := expr.Bin(expr.FloorDiv, i[1], expr.I(channels))
	c := expr.Bin(expr.FloorMod, i[1], expr.I(channels))
	h := expr.AddE(expr.MulE(i[2], expr.I(b)), expr.Bin(expr.FloorDiv, inner, expr.I(b)))
	w := expr.AddE(expr.MulE(i[3], expr.I(b)), expr.Bin(expr.FloorMod, inner, expr.I(b)))
	return in[0].At(i[0], c, h, w)
}
