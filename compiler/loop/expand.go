package loop

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// maxExpandedNodes bounds the expression nodes that unrolling writes.
const maxExpandedNodes = 1 << 20

// Expand writes every unrolled loop out: its body once an iteration, with the loop's variable replaced by a constant.
// Vectorized loops are cut into loops whose extents are powers of two and at most lanes of the type that they store; a
// rest of one lane becomes plain statements. With lanes of one, no vectorized loop is left.
func Expand(b Block, lanes func(array.DType) int64) (Block, error) {
	x := &expander{lanes: lanes}
	x.simplifier = expr.Simplifier{Values: map[*expr.Var]expr.Expr{}, Tensors: map[*expr.Tensor]*expr.Tensor{}}
	x.buffers = map[*expr.Tensor]*Buffer{}
	return x.block(b)
}

type expander struct {
	lanes func(array.DType) int64
	// simplifier has the values of unrolled loops' variables and the tensors of copied buffers.
	simplifier expr.Simplifier
	buffers    map[*expr.Tensor]*Buffer
	// count and nodes are the statements and expression nodes written so far.
	count, nodes int
}

// expr is a copy's expression. What nothing replaces was simplified by Lower.
func (x *expander) expr(e expr.Expr) expr.Expr {
	if x.simplifier.Changes(e) {
		e = x.simplifier.Simplify(e)
	}
	x.nodes += expr.Size(e)
	return e
}

func (x *expander) block(b Block) (Block, error) {
	var out Block
	for _, st := range b {
		if x.count++; x.count > maxStatements || x.nodes > maxExpandedNodes {
			return nil, fmt.Errorf("lower: unrolling makes more than %d statements or %d nodes", maxStatements, maxExpandedNodes)
		}
		done, err := x.stmt(st)
		if err != nil {
			return nil, err
		}
		out = append(out, done...)
	}
	return out, nil
}

func (x *expander) stmt(st Stmt) (Block, error) {
	switch n := st.(type) {
	case *For:
		switch n.Kind {
		case schedule.Unrolled:
			return x.unroll(n)
		case schedule.Vectorized:
			return x.vectorize(n)
		}
		body, err := x.block(n.Body)
		return Block{&For{Var: n.Var, Extent: n.Extent, Kind: n.Kind, Body: body}}, err
	case *If:
		return x.branch(n, x.expr(n.Cond))
	case *Let:
		return x.let(n, x.expr(n.Value)), nil
	case *Alloc:
		if len(x.simplifier.Values) == 0 {
			return Block{n}, nil
		}
		copied := *n.Buffer
		copied.Tensor = flat(n.Buffer.Tensor.Name, n.Buffer.Tensor.DType, n.Buffer.Elements())
		x.buffers[n.Buffer.Tensor] = &copied
		x.simplifier.Tensors[n.Buffer.Tensor] = copied.Tensor
		return Block{&Alloc{&copied}}, nil
	case *Store:
		buffer := n.Buffer
		if r, ok := x.buffers[buffer.Tensor]; ok {
			buffer = r
		}
		return Block{&Store{buffer, x.expr(n.Index), x.expr(n.Value)}}, nil
	default:
		return nil, fmt.Errorf("lower: unknown statement %T", st)
	}
}

func (x *expander) unroll(n *For) (Block, error) {
	var out Block
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

// let gives each copy of an unrolled Let a variable of its own.
func (x *expander) let(n *Let, value expr.Expr) Block {
	if _, constant := value.(*expr.Int); constant {
		x.simplifier.Values[n.Var] = value
		return nil
	}
	if len(x.simplifier.Values) == 0 {
		return Block{&Let{n.Var, value}}
	}
	fresh := *n.Var
	x.simplifier.Values[n.Var] = &fresh
	return Block{&Let{&fresh, value}}
}

func (x *expander) vectorize(n *For) (Block, error) {
	width := int64(1)
	for k, st := range n.Body {
		store, ok := st.(*Store)
		if !ok {
			return nil, fmt.Errorf("lower: a vectorized loop holds a %T", st)
		}
		if w := x.lanes(store.Buffer.Tensor.DType); k == 0 || w < width {
			width = w
		}
	}
	var out Block
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
			out = append(out, &For{Var: lane, Extent: size, Kind: schedule.Vectorized, Body: body})
		}
		base += size
	}
	delete(x.simplifier.Values, n.Var)
	return out, nil
}

func (x *expander) branch(n *If, cond expr.Expr) (Block, error) {
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
	return Block{&If{cond, then, otherwise}}, err
}
