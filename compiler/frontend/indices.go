package frontend

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/op"
)

// indexChecks returns conditions on the inputs whose elements index axes in every execution, directly or after casts
// and operators that move elements. Other indices are not checked, and kernels clamp them: those that are computed,
// that are not a strided view of an input, or that only a branch of an If reads.
func indexChecks(g *graph.Graph) (checks []graph.IndexCheck, err error) {
	c := indexChecker{Graph: g}
	for _, n := range alwaysRun(g) {
		operand, extents := op.IndexedAxes(n.Node)
		for k, extent := range extents {
			indices := n.Operands[operand]
			all := view{int64(k), []axis{{array.Elements(indices.Shape.Fixed()) / int64(len(extents)), int64(len(extents))}}}
			c.extent, c.seen = extent, map[string]bool{}
			if c.visit(indices, all); c.err != nil {
				return nil, fmt.Errorf("node %q (%s): %w", n.Name, n.Op, c.err)
			}
		}
	}
	return c.checks, nil
}

// view is a set of elements of a value: from element first on, along each axis count elements that are stride apart.
type view struct {
	first int64
	axes  []axis
}

type axis struct{ count, stride int64 }

// viewOf returns the elements that an offset visits as its variables vary. It returns false if they are not a view.
func viewOf(offset expr.Linear) (v view, ok bool) {
	v.first = offset.Const
	for _, t := range offset.Terms {
		x, isVar := t.Atom.(*expr.Var)
		if !isVar {
			return v, false
		}
		v.first += min(t.Coef, 0) * (x.Extent - 1)
		v.axes = append(v.axes, axis{x.Extent, max(t.Coef, -t.Coef)})
	}
	slices.SortStableFunc(v.axes, func(a, b axis) int { return cmp.Compare(b.stride, a.stride) })
	return v, true
}

// along returns the view with each axis, where possible, along one axis of its value, whose shape is given.
func (v view) along(shape []int64) view {
	var axes []axis // the innermost one first
	for _, a := range slices.Backward(v.axes) {
		if n := len(axes); n > 0 && a.stride == axes[n-1].stride*axes[n-1].count {
			axes[n-1].count *= a.count
		} else {
			axes = append(axes, a)
		}
	}
	v.axes = nil
	for _, a := range axes {
		for _, stride := range slices.Backward(expr.RowMajorStrides(shape)) {
			if n := stride / a.stride; n > 1 && n < a.count && stride%a.stride == 0 && a.count%n == 0 {
				v.axes = append(v.axes, axis{n, a.stride})
				a = axis{a.count / n, stride}
			}
		}
		v.axes = append(v.axes, a)
	}
	slices.Reverse(v.axes)
	return v
}

// index returns the index of the view's elements in a value of a shape, in terms of new variables.
func (v view) index(shape []int64) []expr.Expr {
	offset := expr.I(v.first)
	for _, a := range v.along(shape).axes {
		offset = expr.AddE(offset, expr.MulE(&expr.Var{Name: "i", Extent: a.count}, expr.I(a.stride)))
	}
	index := make([]expr.Expr, len(shape))
	for k, stride := range expr.RowMajorStrides(shape) {
		index[k] = expr.Simplify(expr.Bin(expr.FloorMod, expr.Bin(expr.FloorDiv, offset, expr.I(stride)), expr.I(shape[k])))
	}
	return index
}

// indexChecker follows indices to inputs.
type indexChecker struct {
	*graph.Graph
	checks []graph.IndexCheck
	// err is set if a constant is out of range.
	err error
	// extent is that of the indexed axis. seen holds visited views, since a value may be concatenated with itself.
	extent int64
	seen   map[string]bool
}

// visit adds the checks of elements of a value.
func (c *indexChecker) visit(v *graph.Value, elements view) {
	n, key := v.Producer, fmt.Sprint(v.ID, elements)
	if array.Elements(v.Shape.Fixed()) == 0 || v.DType == array.Float16 || v.DType == array.BFloat16 || c.seen[key] {
		return
	}
	c.seen[key] = true
	c.Budget.Steps(1 << 10) // about the work for a small operator
	switch {
	case v.Const != nil:
		c.verify(v.Const, elements.first, elements.axes)
	case n == nil:
		c.Budget.Bytes(graph.EntryBytes)
		last := slices.Max(append([]int{0}, c.Varying[v]...))
		check := graph.IndexCheck{Input: v, First: elements.first, Extent: c.extent, Shape: append(slices.Clone(v.Shape.Fixed()[:last]), array.Elements(v.Shape.Fixed()[last:]))}
		for _, a := range elements.along(check.Shape).axes {
			check.Counts, check.Strides = append(check.Counts, a.count), append(check.Strides, a.stride)
		}
		c.checks = append(c.checks, check)
	case n.Def().Kind == op.Reshaping, n.Is(op.Copy), n.Is(op.Cast) && keepsIndices(n.Operands[0].DType, v.DType):
		c.visit(n.Operands[0], elements)
	case n.Def().Kind == op.Permute, n.Def().Kind == op.Injective:
		c.move(n, elements)
	}
}

// verify sets err if an element of a constant, from one on along the given axes, is out of range.
func (c *indexChecker) verify(a *array.Array, at int64, axes []axis) {
	if len(axes) > 0 {
		for k := range axes[0].count {
			c.verify(a, at+k*axes[0].stride, axes[1:])
		}
	} else if i := a.Int(at); i < -c.extent || i >= c.extent {
		c.err = op.OutOfRange(i, c.extent)
	}
}

// keepsIndices reports whether a cast keeps all indices that fit the type.
func keepsIndices(from, to array.DType) bool {
	return !to.IsFloat() && to != array.Bool && to.Bytes() >= min(from.Bytes(), array.Int32.Bytes())
}

// move visits the elements of operands that are those of a node's result.
func (c *indexChecker) move(n *graph.Node, elements view) {
	l := op.NewLowering(c.Budget)
	in := make([]op.Operand, len(n.In))
	for k, v := range n.In {
		switch at := progression(v.Const); {
		case at != nil && k == 1 && n.Is(op.Gather):
			in[k] = l.Lazy(op.Type{DType: array.Int64, Shape: v.Shape}, op.RowMajor(v.Shape.Rank()), at)
		case v.Const != nil:
			in[k] = l.Constant(k, v.Const)
		case v.Present():
			in[k] = l.Input(k, "in", v.Type, op.RowMajor(v.Shape.Rank()))
		}
	}
	lower := n.Def().Lower
	if lower == nil {
		lower = op.Lower
	}
	if out, err := lower(l, n.Node, in); err == nil {
		c.follow(n, l.Args, out.At(elements.index(n.Result.Shape.Fixed())...), expr.Simplifier{})
	}
}

// progression returns equally spaced integers of a constant as a function of their index; nil for others.
func progression(a *array.Array) func(i []expr.Expr) expr.Expr {
	if a == nil || a.DType.IsFloat() || a.Len() == 0 {
		return nil
	}
	first := a.Int(0)
	step := a.Int(min(1, a.Len()-1)) - first
	for k := range a.Len() {
		if a.Int(k) != first+k*step {
			return nil
		}
	}
	return func(i []expr.Expr) expr.Expr {
		return expr.AddE(expr.I(first), expr.MulE(offsetOf(i, a.Shape), expr.I(step)))
	}
}

// offsetOf returns the offset in memory of an element.
func offsetOf(index []expr.Expr, shape []int64) expr.Expr {
	offset := expr.I(0)
	for k, stride := range expr.RowMajorStrides(shape) {
		offset = expr.AddE(offset, expr.MulE(index[k], expr.I(stride)))
	}
	return offset
}

// follow visits the elements of a node's operands that an expression may equal, for all values of its variables
// after s.
func (c *indexChecker) follow(n *graph.Node, args map[*expr.Tensor]op.Arg, e expr.Expr, s expr.Simplifier) {
	switch x := e.(type) {
	case *expr.Load:
		arg, bound := args[x.Tensor]
		elements, ok := viewOf(s.Linearize(offsetOf(x.Index, x.Tensor.Shape)))
		if bound && ok && arg.Made == nil {
			c.visit(n.Operands[arg.ID], elements)
		}
	case *expr.Select:
		if both, ok := x.Cond.(*expr.Binary); ok && both.Op == expr.And {
			c.follow(n, args, expr.Sel(both.A, expr.Sel(both.B, x.A, x.B), x.B), s)
			return
		}
		condition := s.Simplify(x.Cond)
		if _, decided := condition.(*expr.Int); decided {
			c.follow(n, args, expr.Sel(condition, x.A, x.B), s)
		} else if v, at, ok := threshold(condition); ok {
			c.follow(n, args, e, replace(s, v, &expr.Var{Name: v.Name, Extent: at}))
			c.follow(n, args, e, replace(s, v, expr.AddE(&expr.Var{Name: v.Name, Extent: v.Extent - at}, expr.I(at))))
		}
	}
}

// threshold returns the only variable of a comparison, and the value of it at which the result changes.
func threshold(comparison expr.Expr) (v *expr.Var, at int64, ok bool) {
	n, ok := comparison.(*expr.Binary)
	if !ok || n.Op != expr.Lt && n.Op != expr.Le {
		return nil, 0, false
	}
	difference := expr.Linearize(expr.SubE(n.B, n.A))
	if len(difference.Terms) != 1 {
		return nil, 0, false
	}
	if n.Op == expr.Lt {
		difference.Const--
	}
	v, ok = difference.Terms[0].Atom.(*expr.Var)
	if coef := difference.Terms[0].Coef; coef > 0 {
		at = -expr.FloorDivInt(difference.Const, coef)
	} else {
		at = expr.FloorDivInt(difference.Const, -coef) + 1
	}
	return v, at, ok && at > 0 && at < v.Extent
}

// replace returns s followed by the replacement of a variable.
func replace(s expr.Simplifier, v *expr.Var, by expr.Expr) expr.Simplifier {
	values := map[*expr.Var]expr.Expr{v: by}
	next := expr.Simplifier{Values: maps.Clone(values)}
	for x, e := range s.Values {
		values[x] = next.Simplify(e)
	}
	return expr.Simplifier{Values: values}
}

// alwaysRun returns the nodes whose results are needed regardless of the conditions of Where by one bool, which If
// becomes.
func alwaysRun(g *graph.Graph) (nodes []*graph.Node) {
	needed := map[*graph.Value]bool{}
	for _, v := range g.Outputs {
		needed[v] = true
	}
	for _, n := range slices.Backward(g.Nodes) {
		if !needed[n.Result] {
			continue
		}
		nodes = append(nodes, n)
		operands := n.Operands
		if n.Is(op.Where) && array.Elements(operands[0].Shape.Fixed()) == 1 {
			operands = operands[:1]
		}
		for _, v := range operands {
			needed[v] = true
		}
	}
	slices.Reverse(nodes)
	return nodes
}
