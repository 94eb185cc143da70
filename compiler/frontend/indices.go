package frontend

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
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
		for k, size := range extents {
			indices := n.Operands[operand]
			all := view{first: extent.Of(int64(k))}
			for d, stride := range expr.RowMajorStrides(indices.Shape.Max()) {
				if len(extents) == 1 || d < indices.Shape.Rank()-1 { // each position of the last axis indexes another axis
					all.axes = append(all.axes, axis{indices.Shape.At(d), stride})
				}
			}
			c.extent, c.seen = size, map[string]bool{}
			if c.visit(indices, all); c.err != nil {
				return nil, fmt.Errorf("node %q (%s): %w", n.Name, n.Op, c.err)
			}
		}
	}
	return c.checks, nil
}

// view is a set of elements of a value: from element first on, along each axis count elements that are stride apart.
type view struct {
	first extent.Extent
	axes  []axis
}

type axis struct {
	count  extent.Extent
	stride int64
}

// variables maps variables to their extents.
type variables map[*expr.Var]extent.Extent

// viewOf returns the elements that an offset visits as its variables vary. It returns false if they are not a view.
func (vars variables) viewOf(offset expr.Linear) (v view, ok bool) {
	v.first = extent.Of(offset.Const)
	for _, t := range offset.Terms {
		x, isVar := t.Atom.(*expr.Var)
		if !isVar {
			return v, false
		}
		count := vars[x]
		v.first = v.first.Plus(extent.Of(min(t.Coef, 0)).Times(count.Minus(extent.Of(1))))
		v.axes = append(v.axes, axis{count, max(t.Coef, -t.Coef)})
	}
	slices.SortStableFunc(v.axes, func(a, b axis) int { return cmp.Compare(b.stride, a.stride) })
	return v, true
}

// along returns the view with each axis, where possible, along one axis of its value in memory, whose shape is given.
func (v view) along(shape []int64) view {
	var axes []axis // the innermost one first
	for _, a := range slices.Backward(v.axes) {
		if n := len(axes); n > 0 {
			if within, fixed := axes[n-1].count.Const(); fixed && a.stride == axes[n-1].stride*within {
				axes[n-1].count = axes[n-1].count.Times(a.count)
				continue
			}
		}
		axes = append(axes, a)
	}
	v.axes = nil
	for _, a := range axes {
		for _, stride := range slices.Backward(expr.RowMajorStrides(shape)) {
			n, parts := stride/a.stride, a.count.Over(extent.Of(max(stride/a.stride, 1)))
			if n > 1 && n < a.count.Max() && stride%a.stride == 0 && parts.Times(extent.Of(n)) == a.count {
				v.axes = append(v.axes, axis{extent.Of(n), a.stride})
				a = axis{parts, stride}
			}
		}
		v.axes = append(v.axes, a)
	}
	slices.Reverse(v.axes)
	return v
}

// index returns the index of the view's elements in a value of a shape in memory, in terms of new variables; ok is
// false if the first element depends on an extent.
func (v view) index(shape []int64, vars variables) (index []expr.Expr, ok bool) {
	first, ok := v.first.Const()
	offset := expr.I(first)
	for _, a := range v.along(shape).axes {
		i := &expr.Var{Name: "i", Extent: max(a.count.Max(), 1)}
		vars[i] = a.count
		offset = expr.AddE(offset, expr.MulE(i, expr.I(a.stride)))
	}
	index = make([]expr.Expr, len(shape))
	for k, stride := range expr.RowMajorStrides(shape) {
		index[k] = expr.Simplify(expr.Bin(expr.FloorMod, expr.Bin(expr.FloorDiv, offset, expr.I(stride)), expr.I(shape[k])))
	}
	return index, ok
}

// indexChecker follows indices to inputs.
type indexChecker struct {
	*graph.Graph
	checks []graph.IndexCheck
	// err is set if a constant is out of range.
	err error
	// extent is that of the indexed axis. seen holds visited views, since a value may be concatenated with itself.
	extent extent.Extent
	seen   map[string]bool
}

// visit adds the checks of elements of a value.
func (c *indexChecker) visit(v *graph.Value, elements view) {
	n, key := v.Producer, fmt.Sprint(v.ID, elements)
	if v.Shape.IsEmpty() || v.DType == array.Float16 || v.DType == array.BFloat16 || c.seen[key] {
		return
	}
	c.seen[key] = true
	c.Budget.Steps(1 << 10) // about the work for a small operator
	switch {
	case v.Const != nil:
		if first, ok := elements.first.Const(); ok {
			c.verify(v.Const, op.SizeFor(v.Shape, c.extent), first, elements.axes)
		}
	case n == nil:
		c.Budget.Bytes(graph.EntryBytes)
		check := graph.IndexCheck{Input: v, First: elements.first, Extent: c.extent}
		for _, a := range elements.along(nil).axes {
			check.Counts, check.Strides = append(check.Counts, a.count), append(check.Strides, a.stride)
		}
		c.checks = append(c.checks, check)
	case n.Def().Kind == op.Reshaping, n.Is(op.Copy), n.Is(op.Cast) && keepsIndices(n.Operands[0].DType, v.DType):
		c.visit(n.Operands[0], elements)
	case n.Def().Kind == op.Permute, n.Def().Kind == op.Injective:
		c.move(n, elements)
	}
}

// verify sets err if an element of a constant, from one on along the given axes, is out of range for a size.
func (c *indexChecker) verify(a *array.Array, size, at int64, axes []axis) {
	if len(axes) > 0 {
		for k := range axes[0].count.Max() {
			c.verify(a, size, at+k*axes[0].stride, axes[1:])
		}
	} else if i := a.Int(at); i < -size || i >= size {
		c.err = op.OutOfRange(i, size)
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
			in[k] = l.Constant(k, v)
		case v.Present():
			in[k] = l.Input(k, "in", v.Type, op.RowMajor(v.Shape.Rank()))
		}
	}
	lower := op.Lower
	if n.Def().Lower != nil {
		lower = n.Def().LowerPlain
	}
	vars := variables{}
	index, ok := elements.index(n.Result.Shape.Max(), vars)
	if out, err := lower(l, n.Node, in); err == nil && ok {
		c.follow(n, l.Args, vars, out.At(index...), expr.Simplifier{})
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
func (c *indexChecker) follow(n *graph.Node, args map[*expr.Tensor]op.Arg, vars variables, e expr.Expr, s expr.Simplifier) {
	switch x := e.(type) {
	case *expr.Load:
		arg, bound := args[x.Tensor]
		elements, ok := vars.viewOf(s.Linearize(offsetOf(x.Index, x.Tensor.Shape)))
		if bound && ok && arg.Made == nil && arg.Symbol == nil {
			c.visit(n.Operands[arg.ID], elements)
		}
	case *expr.Select:
		if both, ok := x.Cond.(*expr.Binary); ok && both.Op == expr.And {
			c.follow(n, args, vars, expr.Sel(both.A, expr.Sel(both.B, x.A, x.B), x.B), s)
			return
		}
		condition := s.Simplify(x.Cond)
		if _, decided := condition.(*expr.Int); decided {
			c.follow(n, args, vars, expr.Sel(condition, x.A, x.B), s)
		} else if v, at, ok := threshold(condition); ok && !vars[v].IsOpen() {
			below, above := &expr.Var{Name: v.Name, Extent: at}, &expr.Var{Name: v.Name, Extent: v.Extent - at}
			vars[below], vars[above] = extent.Of(below.Extent), extent.Of(above.Extent)
			c.follow(n, args, vars, e, replace(s, v, below))
			c.follow(n, args, vars, e, replace(s, v, expr.AddE(above, expr.I(at))))
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
		if n.Is(op.Where) && operands[0].Shape.Elements().Is(1) {
			operands = operands[:1]
		}
		for _, v := range operands {
			needed[v] = true
		}
	}
	slices.Reverse(nodes)
	return nodes
}
