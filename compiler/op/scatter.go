package op

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// A scatter is computed from the result's side: each element looks for the updates that name it. With known indices
// the search happens at compile time, and an element costs one look-up. Otherwise it costs a comparison for each
// update of its line (ScatterElements) or for each index tuple (ScatterND, once for all elements with equal keys),
// which suits the few updates of caches and masks.

var scatterDefs = []Def{
	{Name: "ScatterElements", Kind: Reduction, MinIn: 3, MaxIn: 3, Label: "scatter", Infer: inferScatterElements, Lower: lowerScatterElements, Work: scatterElementsWork},
	{Name: "Scatter", Kind: Reduction, MinIn: 3, MaxIn: 3, Label: "scatter", Infer: inferScatterElements, Lower: lowerScatterElements, Work: scatterElementsWork},
	{Name: "ScatterND", Kind: Reduction, MinIn: 3, MaxIn: 3, Label: "scatter", Infer: inferScatterND, Lower: lowerScatterND, Work: scatterNDWork},
}

// reductions maps the attribute to the combiner of an element and its updates.
var reductions = map[string]expr.Combiner{
	"none": expr.None, "add": expr.Sum, "mul": expr.Prod, "max": expr.Maximum, "min": expr.Minimum,
}

func (n *Node) scatterReduction() expr.Combiner {
	name := n.Text("reduction", "none")
	c, ok := reductions[name]
	if !ok {
		n.fail("reduction %q is unknown", name)
	}
	if c != expr.None && n.In[0].DType == array.Bool {
		n.fail("reduction %q of bool is not supported", name)
	}
	return c
}

func inferScatterElements(n *Node) (Type, error) {
	x, index, updates := n.In[0], n.In[1], n.In[2]
	axis := n.axis(n.Int("axis", 0), x.Shape.Rank())
	n.scatterReduction()
	n.check()
	if index.DType != array.Int32 && index.DType != array.Int64 || updates.DType != x.DType ||
		index.Shape.Rank() != x.Shape.Rank() || !index.Shape.Equal(updates.Shape) {
		return Type{}, fmt.Errorf("indices %v or updates %v do not fit %v", index.Type, updates.Type, x.Type)
	}
	for k, e := range index.Shape.Extents() {
		if size := x.Shape.At(k); k != axis && !e.AtMost(size) || !index.Shape.IsEmpty() && size.Is(0) {
			return Type{}, fmt.Errorf("indices %v do not fit %v%s", index.Type, x.Type, fixOpen(e, size))
		}
	}
	return x.Type, nil
}

func scatterElementsWork(n *Node) float64 {
	return float64(array.Elements(n.Out.Shape.Max())) * float64(n.In[1].Shape.Max()[n.axis(n.Int("axis", 0), n.Out.Shape.Rank())])
}

func lowerScatterElements(l *Lowering, n *Node, in []Operand) Operand {
	x, updates := l.Readable(in[0]), l.Readable(in[2])
	shape, index := n.Out.Shape, n.In[1].Shape
	if index.IsEmpty() {
		return x
	}
	axis := n.axis(n.Int("axis", 0), shape.Rank())
	// An element of a line outside the indices reads those of another line, and ignores them.
	clamped := func(i []expr.Expr, u expr.Expr) (at []expr.Expr, inside expr.Expr) {
		at, inside = slices.Clone(i), &expr.Int{Value: 1, Type: array.Bool}
		for k := range at {
			if size := index.At(k); k != axis && size != shape.At(k) {
				inside = expr.Bin(expr.And, inside, expr.Bin(expr.Lt, i[k], l.Extent(size)))
				at[k] = expr.MinE(i[k], l.Extent(size.Minus(extent.Of(1)).Most(extent.Of(0))))
			}
		}
		at[axis] = u
		return at, inside
	}
	s := scatter{l: l, n: n, x: x, count: index.At(axis), shape: shape, layout: x.Layout}
	s.names = func(positions Operand) func(i []expr.Expr, u expr.Expr) expr.Expr {
		return func(i []expr.Expr, u expr.Expr) expr.Expr {
			at, inside := clamped(i, u)
			return expr.Bin(expr.And, inside, expr.Bin(expr.Eq, s.l.position(positions.At(at...), shape.At(axis)), i[axis]))
		}
	}
	s.update = func(i []expr.Expr, u expr.Expr) expr.Expr {
		at, _ := clamped(i, u)
		return updates.At(at...)
	}
	s.key = func(i []expr.Expr) []expr.Expr { return i }
	if in[1].Const != nil && !shape.IsOpen() {
		s.last = lastElements(l.budget, in[1].Const, shape.Max(), axis)
	}
	return s.lower(in[1])
}

// scatter is common to the two operators: count updates for each element of shape, in the order in which later ones
// win, and the condition that an update names an element.
type scatter struct {
	l      *Lowering
	n      *Node
	x      Operand
	count  extent.Extent
	shape  extent.Shape
	layout []int
	// key returns the part of an element's index that determines which updates name it; shape and layout are those
	// of keys.
	key func(i []expr.Expr) []expr.Expr
	// names returns, given the indices, the condition that update u names key i.
	names func(indices Operand) func(i []expr.Expr, u expr.Expr) expr.Expr
	// update returns update u of element i.
	update func(i []expr.Expr, u expr.Expr) expr.Expr
	// last holds for each key the last update that names it, or -1, if the indices and shape are known.
	last *array.Array
}

func (s *scatter) lower(indices Operand) Operand {
	c := s.n.scatterReduction()
	if c == expr.None {
		last := Operand{}
		if s.last != nil {
			last = s.l.Made(s.last)
		} else {
			names := s.names(s.l.Readable(indices))
			last = s.l.Reduce("last", expr.Maximum, s.shape, s.layout, extent.ShapeOf(s.count), func(i, r []expr.Expr) expr.Expr {
				return expr.Sel(names(i, r[0]), r[0], expr.I(-1))
			})
		}
		return s.l.Lazy(s.n.Out, s.x.Layout, func(i []expr.Expr) expr.Expr {
			u := last.At(s.key(i)...)
			updated := s.update(i, expr.MaxE(u, expr.I(0)))
			return expr.Sel(expr.Bin(expr.Le, expr.I(0), u), updated, s.x.At(i...))
		})
	}
	names := s.names(s.l.Readable(indices))
	identity := c.Identity(wideType(s.n.Out.DType))
	acc := s.l.Reduce("updates", c, s.n.Out.Shape, s.x.Layout, extent.ShapeOf(s.count), func(i, r []expr.Expr) expr.Expr {
		return expr.Sel(names(s.key(i), r[0]), wide(s.update(i, r[0])), identity)
	})
	return s.l.Lazy(s.n.Out, s.x.Layout, func(i []expr.Expr) expr.Expr {
		return expr.To(s.n.Out.DType, c.Combine(wide(s.x.At(i...)), acc.At(i...)))
	})
}

// lastElements returns for each element of shape the position on the axis of the last index that names it, or -1.
func lastElements(b *Budget, index *array.Array, shape []int64, axis int) *array.Array {
	last := b.array(array.Int64, shape...)
	for i := range last.Len() {
		last.SetInt(i, -1)
	}
	at := make([]int64, len(shape))
	for i := range index.Len() {
		rest := i
		for k := len(at) - 1; k >= 0; k-- {
			at[k] = rest % index.Shape[k]
			rest /= index.Shape[k]
		}
		u := at[axis]
		at[axis] = knownPosition(index.Int(i), shape[axis])
		last.SetInt(flatten(at, shape), u)
	}
	return last
}

// knownPosition is position for a known index.
func knownPosition(v, size int64) int64 {
	if v < 0 {
		v += size
	}
	return max(0, min(v, size-1))
}

// flatten returns the row-major position of an index.
func flatten(at, shape []int64) int64 {
	var flat int64
	for k, v := range at {
		flat = flat*shape[k] + v
	}
	return flat
}
