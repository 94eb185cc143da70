package pass

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
)

// Products inserts waits for asynchronous warpgroup products before threads use their sums or overwrite their
// operands. An existing wait for all but some products covers the operands. Launches without products get no waits.
func Products(f *ir.Func) *ir.Func {
	return ir.MapLaunches(f, productsLaunch)
}

func productsLaunch(b ir.Block) ir.Block {
	if !ir.Any(b, func(c *ir.Call) bool { return c.Starts == nvidia.Products }) {
		return without(b)
	}
	out, _ := productsBlock(b, underway{})
	return out
}

// without returns a block without its waits.
func without(b ir.Block) ir.Block {
	out := make(ir.Block, 0, len(b))
	for _, st := range b {
		if c, ok := st.(*ir.Call); !ok || c.Waits != nvidia.Products {
			out = append(out, ir.MapInside(st, without))
		}
	}
	return out
}

// underway holds the buffers of products in flight: their sums and their operands.
type underway struct {
	sums     map[*expr.Tensor]*ir.Buffer
	matrices map[*expr.Tensor]bool
}

func (u underway) plus(v underway) underway {
	sum := underway{map[*expr.Tensor]*ir.Buffer{}, map[*expr.Tensor]bool{}}
	for _, x := range []underway{u, v} {
		maps.Copy(sum.sums, x.sums)
		maps.Copy(sum.matrices, x.matrices)
	}
	return sum
}

// within reports whether v covers all of u.
func (u underway) within(v underway) bool {
	sum := v.plus(u)
	return len(sum.sums) == len(v.sums) && len(sum.matrices) == len(v.matrices)
}

// with returns u and a product.
func (u underway) with(c *ir.Call) underway {
	v := underway{map[*expr.Tensor]*ir.Buffer{}, map[*expr.Tensor]bool{}}
	for k, p := range c.Params {
		if a := c.Args[k]; p.Async {
			v.matrices[a.Tensor] = true
		} else {
			v.sums[a.Tensor] = a.Buffer
		}
	}
	return u.plus(v)
}

// wait returns waits for all products.
func (u underway) wait() (waits ir.Block) {
	for _, b := range slices.SortedFunc(maps.Values(u.sums), func(a, b *ir.Buffer) int { return cmp.Compare(a.Tensor.Name, b.Tensor.Name) }) {
		waits = append(waits, ir.Exec(nvidia.WaitSums, ir.All(b)))
	}
	if waits == nil {
		waits = ir.Block{ir.Exec(nvidia.Products.Wait, ir.Of(expr.I(0)))}
	}
	return waits
}

// needs reports whether a statement must wait for the products in flight.
func (u underway) needs(st ir.Stmt) bool {
	needs := false
	for t := range u.sums {
		needs = needs || ir.Uses(ir.Block{st}, t)
	}
	ir.Visit(ir.Block{st}, func(st ir.Stmt) {
		w := ir.Written(st)
		needs = needs || w != nil && u.matrices[w.Tensor]
	})
	return needs
}

// productsBlock rewrites statements that threads execute together, and returns the products in flight after them.
func productsBlock(b ir.Block, now underway) (ir.Block, underway) {
	var out ir.Block
	for _, st := range b {
		switch n := st.(type) {
		case *ir.Call:
			switch {
			case n.Starts == nvidia.Products:
				now = now.with(n)
			case n.Instruction == nvidia.Products.Wait && !expr.Same(n.Args[0].Index, expr.I(0)):
				now = underway{sums: now.sums}
			case n.Waits == nvidia.Products:
				out, now = append(out, now.wait()...), underway{}
				continue
			default:
				out, now = settled(out, st, now)
			}
		case *ir.For:
			if ir.Any(n.Body, func(c *ir.Call) bool { return c.Starts == nvidia.Products || c.Waits == nvidia.Products }) {
				st, now = productsLoop(n, now)
				break
			}
			out, now = settled(out, st, now)
		case *ir.If:
			then, afterThen := productsBlock(n.Then, now)
			otherwise, afterElse := productsBlock(n.Else, now)
			st, now = &ir.If{Cond: n.Cond, Then: then, Else: otherwise}, afterThen.plus(afterElse)
		default:
			out, now = settled(out, st, now)
		}
		out = append(out, st)
	}
	return out, now
}

// settled appends a wait to a block if the next statement needs one.
func settled(b ir.Block, next ir.Stmt, now underway) (ir.Block, underway) {
	if !now.needs(next) {
		return b, now
	}
	return append(b, now.wait()...), underway{}
}

// productsLoop rewrites a loop. Products in flight at its end are in flight at the start of the next iteration.
func productsLoop(n *ir.For, before underway) (*ir.For, underway) {
	for {
		body, after := productsBlock(n.Body, before)
		if n.Extent == 1 || n.Kind == ir.Threads || after.within(before) {
			return n.With(body), after
		}
		before = before.plus(after)
	}
}
