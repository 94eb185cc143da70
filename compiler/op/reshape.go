package op

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// View and Reindex are reshapes to the type that their creator sets in Out: one that shares the memory of its operand,
// and one that moves elements, since memory is laid out for the most of open extents. Models do not contain them.
const (
	View    = "view"
	Reindex = "reindex"
)

var reshapeDefs = []Def{
	{Name: Reshape, Kind: Reshaping, MinIn: 2, MaxIn: 2, Infer: inferReshape},
	{Name: View, Kind: Reshaping, Internal: true, MinIn: 1, MaxIn: 1, Infer: inferGiven},
	{Name: Reindex, Kind: Injective, Internal: true, MinIn: 1, MaxIn: 1, Infer: inferGiven, Lower: lowerReindex},
	{Name: "Flatten", Kind: Reshaping, MinIn: 1, MaxIn: 1, Infer: inferFlatten},
	{Name: Squeeze, Kind: Reshaping, MinIn: 1, MaxIn: 2, Infer: inferSqueeze},
	{Name: Unsqueeze, Kind: Reshaping, MinIn: 1, MaxIn: 2, Infer: inferUnsqueeze},
	{
		Name: Transpose, Kind: Permute, MinIn: 1, MaxIn: 1, Perm: permutation,
		Infer: func(n *Node) (Type, error) {
			perm := permutation(n)
			return Type{n.In[0].DType, n.In[0].Shape.Permuted(perm)}, n.err
		},
	},
}

func permutation(n *Node) []int {
	rank := n.In[0].Shape.Rank()
	list := n.Ints("perm", nil)
	if list == nil {
		perm := RowMajor(rank)
		slices.Reverse(perm)
		return perm
	}
	n.axes(list, rank)
	if len(list) != rank {
		n.fail("perm %v does not have %d axes", list, rank)
		return RowMajor(rank)
	}
	perm := make([]int, rank)
	for k, v := range list {
		perm[k] = n.axis(v, rank)
	}
	return perm
}

func inferReshape(n *Node) (Type, error) {
	in, target := n.In[0], slices.Clone(n.KnownExtents(1, "shape"))
	n.check()
	open, rest := -1, extent.Of(1)
	for k, e := range target {
		switch {
		case e.Is(0) && n.Int("allowzero", 0) == 0:
			if k >= in.Shape.Rank() {
				return Type{}, fmt.Errorf("shape %v copies axis %d of %v", target, k, in.Type)
			}
			target[k] = in.Shape.At(k)
		case e.Is(-1) && open < 0:
			open = k
			continue
		case e.Min() < 0:
			return Type{}, fmt.Errorf("shape %v has a negative extent", target)
		}
		rest = rest.Times(target[k])
		if rest.Max() < 0 || rest.Max() > 1<<48 {
			return Type{}, fmt.Errorf("shape %v is too large", target)
		}
	}
	total := in.Shape.Elements()
	if open >= 0 {
		if rest.Is(0) {
			return Type{}, fmt.Errorf("%v cannot take shape %v", in.Type, target)
		}
		target[open] = total.Over(rest)
		rest = rest.Times(target[open])
	}
	if rest != total {
		return Type{}, fmt.Errorf("%v cannot take shape %v", in.Type, target)
	}
	return Type{in.DType, extent.ShapeOf(target...)}, nil
}

// inferGiven accepts a type that the node's creator has set.
func inferGiven(n *Node) (Type, error) {
	if n.Out.Shape.Elements() != n.In[0].Shape.Elements() || n.Out.DType != n.In[0].DType {
		return Type{}, fmt.Errorf("%v cannot become %v", n.In[0].Type, n.Out)
	}
	return n.Out, nil
}

func inferFlatten(n *Node) (Type, error) {
	in := n.In[0]
	axis := n.Int("axis", 1)
	if axis < 0 {
		axis += int64(in.Shape.Rank())
	}
	if axis < 0 || axis > int64(in.Shape.Rank()) {
		return Type{}, fmt.Errorf("axis %d is outside %v", axis, in.Type)
	}
	rows, columns := in.Shape.Slice(0, int(axis)), in.Shape.Slice(int(axis), in.Shape.Rank())
	return Type{in.DType, extent.ShapeOf(rows.Elements(), columns.Elements())}, nil
}

func inferSqueeze(n *Node) (Type, error) {
	in := n.In[0]
	list := n.IntsOr(1, "axes")
	set := n.axes(list, in.Shape.Rank())
	shape := []extent.Extent{}
	for k, e := range in.Shape.Extents() {
		if set[k] && !e.Is(1) {
			return Type{}, fmt.Errorf("axis %d of %v is not 1", k, in.Type)
		}
		if !set[k] && (list != nil || !e.Is(1)) {
			shape = append(shape, e)
		}
	}
	return Type{in.DType, extent.ShapeOf(shape...)}, nil
}

func inferUnsqueeze(n *Node) (Type, error) {
	in := n.In[0]
	list := n.IntsOr(1, "axes")
	set := n.axes(list, in.Shape.Rank()+len(list))
	rest := in.Shape.Extents()
	shape := []extent.Extent{}
	for _, added := range set {
		if added || len(rest) == 0 {
			shape = append(shape, extent.Of(1))
			continue
		}
		shape, rest = append(shape, rest[0]), rest[1:]
	}
	return Type{in.DType, extent.ShapeOf(shape...)}, nil
}

// run is a part of a reshape: neighbouring axes of the operand whose elements are those of neighbouring axes of the
// result.
type run struct{ from, to []int }

// runsOf divides a reshape into the smallest runs. The shapes have the same number of elements. Without any, extents
// may be left over for a last run.
func runsOf(from, to extent.Shape) (runs []run) {
	for i, o := 0, 0; i < from.Rank() || o < to.Rank(); {
		var r run
		a, b := extent.Of(1), extent.Of(1)
		for more := true; more; more = a != b && (i < from.Rank() || o < to.Rank()) {
			switch {
			case i < from.Rank() && (a.Max() < b.Max() || a.Max() == b.Max() && len(r.from) <= len(r.to)) || o == to.Rank():
				a, r.from, i = a.Times(from.At(i)), append(r.from, i), i+1
			default:
				b, r.to, o = b.Times(to.At(o)), append(r.to, o), o+1
			}
		}
		runs = append(runs, r)
	}
	return runs
}

// IsView reports whether the elements of a reshaped value are at the same places in memory, which is laid out for the
// most: in each run, only the first axis may be open.
func IsView(from, to extent.Shape) bool {
	if !from.IsOpen() && !to.IsOpen() {
		return true
	}
	for _, r := range runsOf(from, to) {
		a, b := from.Permuted(longAxes(from, r.from)), to.Permuted(longAxes(to, r.to))
		if a.Equal(b) {
			continue
		}
		if a.Rank() > 0 && a.Slice(1, a.Rank()).IsOpen() || b.Rank() > 0 && b.Slice(1, b.Rank()).IsOpen() || array.Elements(a.Max()) != array.Elements(b.Max()) {
			return false
		}
	}
	return true
}

// lowerReindex reads the elements of a reshape that is no view: each run has one number for its position.
func lowerReindex(l *Lowering, n *Node, in []Operand) Operand {
	x := l.Readable(in[0])
	runs := runsOf(x.Shape, n.Out.Shape)
	return l.Lazy(n.Out, RowMajor(n.Out.Shape.Rank()), func(i []expr.Expr) expr.Expr {
		index := zeros(x.Shape.Rank())
		for _, r := range runs {
			from, to := longAxes(x.Shape, r.from), longAxes(n.Out.Shape, r.to)
			if len(from) == 1 && len(to) == 1 {
				index[from[0]] = i[to[0]]
				continue
			}
			at := expr.I(0)
			for _, axis := range to {
				at = expr.AddE(expr.MulE(at, l.Extent(n.Out.Shape.At(axis))), i[axis])
			}
			for k := len(from) - 1; k > 0; k-- {
				size := l.Extent(x.Shape.At(from[k]))
				index[from[k]], at = expr.Bin(expr.FloorMod, at, size), expr.Bin(expr.FloorDiv, at, size)
			}
			if len(from) > 0 {
				index[from[0]] = at
			}
		}
		return x.At(index...)
	})
}

// longAxes returns those axes whose extent is not 1.
func longAxes(shape extent.Shape, axes []int) (long []int) {
	for _, axis := range axes {
		if !shape.At(axis).Is(1) {
			long = append(long, axis)
		}
	}
	return long
}
