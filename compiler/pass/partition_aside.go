package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// maxBeside limits the statements without a condition that may be copied to decide the condition.
const maxBeside = 16

// isAside reports whether a condition belongs to a copy that supports a loop's main work, such as the copy of a
// tile's input with its border. Such a condition is decided in the copy's own outer loops. Versions of the whole
// loop that differ only in the copy would repeat the rest and take long to compile.
func isAside(n *ir.For, c *expr.Binary) bool {
	nest := innermost(n.Body, c)
	return nest != nil && copies(nest, c) && statements(n.Body)-statements(nest.Body) > maxBeside
}

// innermost returns the innermost serial loop that contains all uses of a condition, or nil.
func innermost(b ir.Block, c *expr.Binary) *ir.For {
	var only ir.Stmt
	for _, st := range b {
		if has(ir.Block{st}, c) {
			if only != nil {
				return nil
			}
			only = st
		}
	}
	n, ok := only.(*ir.For)
	if !ok || n.Kind != ir.Serial {
		return nil
	}
	if inner := innermost(n.Body, c); inner != nil {
		return inner
	}
	return n
}

func has(b ir.Block, c *expr.Binary) bool {
	return slices.ContainsFunc(comparisons(b), func(x *expr.Binary) bool { return expr.Same(x, c) })
}

// copies reports whether the values that depend on a condition are stored rather than accumulated.
func copies(n *ir.For, c *expr.Binary) bool {
	plain := true
	ir.Visit(n.Body, func(st ir.Stmt) {
		if s, ok := st.(*ir.Store); ok && has(ir.Block{s}, c) {
			for _, l := range expr.Loads(s.Value) {
				plain = plain && l.Tensor != s.Buffer.Tensor
			}
		}
	})
	return plain
}

// statements returns the number of stores in a block after unrolling.
func statements(b ir.Block) int64 {
	n := int64(0)
	for _, st := range b {
		switch x := st.(type) {
		case *ir.For:
			times := int64(1)
			if x.Kind == ir.Unrolled {
				times = x.Extent
			}
			n += times * statements(x.Body)
		case *ir.If:
			n += statements(x.Then) + statements(x.Else)
		case *ir.Store:
			n++
		}
	}
	return n
}
