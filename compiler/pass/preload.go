package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

const (
	// maxLoaded limits the elements that a nest loads ahead, since they occupy registers.
	maxLoaded = 32
	// minLoaded is the smallest number of elements that are worth loading ahead.
	minLoaded = 4
)

// Preload loads the operands of several results before a thread computes the first one. It applies to nests of
// unrolled loops that store a result per iteration, such as epilogues, and puts loops of loads before them. If a
// result takes branches, as division does, the assembler would otherwise make each result wait for its own loads.
func Preload(f *ir.Func) *ir.Func {
	return ir.MapLaunches(f, func(b ir.Block) ir.Block { return preloadLaunch{ir.Changed(b)}.block(b) })
}

// preloadLaunch holds the tensors that a launch allocates or writes. All others lie in global memory and do not
// change.
type preloadLaunch struct{ changed map[*expr.Tensor]bool }

func (l preloadLaunch) block(b ir.Block) (out ir.Block) {
	for _, st := range b {
		if n, ok := st.(*ir.For); ok {
			if loaded, rest, ok := l.nest(n); ok {
				out = append(append(out, loaded...), rest)
				continue
			}
		}
		out = append(out, ir.MapInside(st, l.block))
	}
	return out
}

// nest splits a nest of unrolled loops around a store into its loads and the nest that uses them; ok is false if
// the statement is not such a nest, or the number of loads is out of bounds.
func (l preloadLaunch) nest(n *ir.For) (loaded ir.Block, rest ir.Stmt, ok bool) {
	nest, ok := ir.PerfectNestOf(n)
	if !ok || nest.Guard != nil || slices.ContainsFunc(nest.Loops, func(l *ir.For) bool { return l.Kind != ir.Unrolled }) {
		return nil, nil, false
	}
	loops, st := nest.Loops, nest.Store
	var loads []*expr.Load
	total := int64(0)
	for _, x := range l.always(st.Value) {
		if !slices.ContainsFunc(loads, func(y *expr.Load) bool { return expr.Same(x, y) }) {
			loads = append(loads, x)
			total += count(axes(x, loops))
		}
	}
	if total < minLoaded || total > maxLoaded {
		return nil, nil, false
	}
	value := st.Value
	for _, x := range loads {
		b := &ir.Buffer{Tensor: ir.Flat(x.Tensor.Name+"_ahead", x.Tensor.DType, count(axes(x, loops))), Space: ir.Private}
		loaded = append(loaded, &ir.Alloc{Buffer: b})
		loaded = append(loaded, around(axes(x, loops), ir.Block{&ir.Store{Buffer: b, Index: iteration(axes(x, loops)), Value: x}})...)
		value = expr.Rewrite(value, func(e expr.Expr) expr.Expr {
			if expr.Same(e, x) {
				return b.Tensor.At(iteration(axes(x, loops)))
			}
			return e
		})
	}
	return loaded, ir.Around(loops, ir.Block{&ir.Store{Buffer: st.Buffer, Index: st.Index, Value: value}})[0], true
}

// always returns the loads from global memory that a value makes unconditionally.
func (l preloadLaunch) always(e expr.Expr) (list []*expr.Load) {
	switch n := e.(type) {
	case *expr.Load:
		if !l.changed[n.Tensor] && len(expr.Loads(n)) == 1 {
			list = append(list, n)
		}
	case *expr.Binary:
		if n.Op != expr.And && n.Op != expr.Or {
			list = append(l.always(n.A), l.always(n.B)...)
		}
	case *expr.Unary:
		list = l.always(n.A)
	case *expr.Cast:
		list = l.always(n.A)
	}
	return list
}

// axes returns the loops that a load depends on.
func axes(x *expr.Load, loops []*ir.For) (used []*ir.For) {
	for _, n := range loops {
		if expr.Uses(x, n.Var) {
			used = append(used, n)
		}
	}
	return used
}

// count returns the number of iterations of a nest.
func count(loops []*ir.For) int64 {
	n := int64(1)
	for _, l := range loops {
		n *= l.Extent
	}
	return n
}

// iteration returns the number of the current iteration of a nest.
func iteration(loops []*ir.For) expr.Expr {
	at := expr.I(0)
	for _, l := range loops {
		at = expr.AddE(expr.MulE(at, expr.I(l.Extent)), l.Var)
	}
	return expr.Simplify(at)
}
