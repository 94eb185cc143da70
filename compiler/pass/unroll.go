package pass

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// maxExpandedNodes limits the expression nodes that unrolling creates.
const maxExpandedNodes = 1 << 20

// Unroll expands every unrolled loop: it repeats the body once per iteration, with the loop variable replaced by a
// constant. It cuts vector loops into extents that are powers of two and at most lanes of the stored type; a
// remainder of one lane becomes plain statements. If lanes returns one, no vector loop is left.
func Unroll(f *ir.Func, lanes func(array.DType) int64) (*ir.Func, error) {
	x := &expander{lanes: lanes}
	x.simplifier = expr.Simplifier{Values: map[*expr.Var]expr.Expr{}, Tensors: map[*expr.Tensor]*expr.Tensor{}}
	x.buffers = map[*expr.Tensor]*ir.Buffer{}
	body, err := x.block(f.Body)
	if err != nil {
		return nil, err
	}
	return f.With(body), nil
}

type expander struct {
	lanes func(array.DType) int64
	// simplifier holds the values of unrolled variables and the tensors of copied buffers.
	simplifier expr.Simplifier
	buffers    map[*expr.Tensor]*ir.Buffer
	// count and nodes are the numbers of statements and expression nodes created so far.
	count, nodes int
}

// expr returns the expression of a copy. Expressions without substitutions were simplified by Lower.
func (x *expander) expr(e expr.Expr) expr.Expr {
	if x.simplifier.Changes(e) {
		e = x.simplifier.Simplify(e)
	}
	x.nodes += expr.Size(e)
	return e
}

func (x *expander) block(b ir.Block) (ir.Block, error) {
	var out ir.Block
	for _, st := range b {
		if x.count++; x.count > ir.MaxStatements || x.nodes > maxExpandedNodes {
			return nil, fmt.Errorf("unroll: unrolling makes more than %d statements or %d nodes", ir.MaxStatements, maxExpandedNodes)
		}
		done, err := x.stmt(st)
		if err != nil {
			return nil, err
		}
		out = append(out, done...)
	}
	return out, nil
}

func (x *expander) stmt(st ir.Stmt) (ir.Block, error) {
	switch n := st.(type) {
	case *ir.For:
		switch n.Kind {
		case ir.Unrolled:
			return x.unroll(n)
		case ir.Vector:
			return x.vectorize(n)
		}
		body, err := x.block(n.Body)
		loop := n.With(body)
		loop.Range = n.Range.Rewritten(x.expr)
		return ir.Block{loop}, err
	case *ir.If:
		return x.branch(n, x.expr(n.Cond))
	case *ir.Let:
		return x.let(n, x.expr(n.Value)), nil
	case *ir.Alloc:
		if len(x.simplifier.Values) == 0 {
			return ir.Block{n}, nil
		}
		copied := *n.Buffer
		copied.Tensor = ir.Flat(n.Buffer.Tensor.Name, n.Buffer.Tensor.DType, n.Buffer.Elements())
		x.buffers[n.Buffer.Tensor] = &copied
		x.simplifier.Tensors[n.Buffer.Tensor] = copied.Tensor
		return ir.Block{&ir.Alloc{Buffer: &copied}}, nil
	case *ir.Store:
		buffer := n.Buffer
		if r, ok := x.buffers[buffer.Tensor]; ok {
			buffer = r
		}
		return ir.Block{&ir.Store{Buffer: buffer, Index: x.expr(n.Index), Value: x.expr(n.Value)}}, nil
	default:
		return nil, fmt.Errorf("unroll: unknown statement %T", st)
	}
}

func (x *expander) unroll(n *ir.For) (ir.Block, error) {
	var out ir.Block
	for k := range n.Extent {
		x.simplifier.Values[n.Var] = expr.I(k)
		body, err := x.block(n.Body)
		if err != nil {
			return nil, err
		}
		out = append(out, body...)
	}
	delete(x.simplifier.Values, n.Var)
	return out, nil
}

// let gives each copy of an unrolled Let its own variable.
func (x *expander) let(n *ir.Let, value expr.Expr) ir.Block {
	if _, constant := value.(*expr.Int); constant {
		x.simplifier.Values[n.Var] = value
		return nil
	}
	if len(x.simplifier.Values) == 0 {
		return ir.Block{&ir.Let{Var: n.Var, Value: value}}
	}
	fresh := *n.Var
	x.simplifier.Values[n.Var] = &fresh
	return ir.Block{&ir.Let{Var: &fresh, Value: value}}
}

func (x *expander) vectorize(n *ir.For) (ir.Block, error) {
	width := int64(1)
	for k, st := range n.Body {
		store, ok := st.(*ir.Store)
		if !ok {
			return nil, fmt.Errorf("unroll: a vectorized loop holds a %T", st)
		}
		if w := x.lanes(store.Buffer.Tensor.DType); k == 0 || w < width {
			width = w
		}
	}
	var out ir.Block
	for base := int64(0); base < n.Extent; {
		size := width
		for size > n.Extent-base {
			size /= 2
		}
		lane := &expr.Var{Name: n.Var.Name, Extent: size}
		x.simplifier.Values[n.Var] = expr.AddE(expr.I(base), lane)
		if size == 1 {
			x.simplifier.Values[n.Var] = expr.I(base)
		}
		body, err := x.block(n.Body)
		if err != nil {
			return nil, err
		}
		if size == 1 {
			out = append(out, body...)
		} else {
			out = append(out, &ir.For{Var: lane, Extent: size, Kind: ir.Vector, Body: body})
		}
		base += size
	}
	delete(x.simplifier.Values, n.Var)
	return out, nil
}

func (x *expander) branch(n *ir.If, cond expr.Expr) (ir.Block, error) {
	if c, ok := cond.(*expr.Int); ok {
		if c.Value != 0 {
			return x.block(n.Then)
		}
		return x.block(n.Else)
	}
	then, err := x.block(n.Then)
	if err != nil {
		return nil, err
	}
	otherwise, err := x.block(n.Else)
	return ir.Block{&ir.If{Cond: cond, Then: then, Else: otherwise}}, err
}
