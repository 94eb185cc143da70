package loop

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Expand writes every unrolled loop out: its body once an iteration, with the loop's variable replaced by a constant.
// Vectorized loops are cut into loops whose extents are powers of two and at most lanes of the type that they store; a
// rest of one lane becomes plain statements. With lanes of one, no vectorized loop is left.
func Expand(b Block, lanes func(array.DType) int64) (Block, error) {
	x := &expander{lanes: lanes}
	return x.block(b, map[*expr.Var]expr.Expr{}, map[*expr.Tensor]*Buffer{})
}

type expander struct {
	lanes func(array.DType) int64
	count int
}

func (x *expander) block(b Block, values map[*expr.Var]expr.Expr, buffers map[*expr.Tensor]*Buffer) (Block, error) {
	var out Block
	for _, st := range b {
		if x.count++; x.count > maxStatements {
			return nil, fmt.Errorf("lower: unrolling makes more than %d statements", maxStatements)
		}
		done, err := x.stmt(st, values, buffers)
		if err != nil {
			return nil, err
		}
		out = append(out, done...)
	}
	return out, nil
}

func (x *expander) stmt(st Stmt, values map[*expr.Var]expr.Expr, buffers map[*expr.Tensor]*Buffer) (Block, error) {
	e := func(e expr.Expr) expr.Expr { return rewrite(e, values, buffers) }
	switch n := st.(type) {
	case *For:
		switch n.Kind {
		case schedule.Unrolled:
			return x.unroll(n, values, buffers)
		case schedule.Vectorized:
			return x.vectorize(n, values, buffers)
		}
		body, err := x.block(n.Body, values, buffers)
		return Block{&For{Var: n.Var, Extent: n.Extent, Kind: n.Kind, Body: body}}, err
	case *If:
		return x.branch(n, e(n.Cond), values, buffers)
	case *Let:
		return x.let(n, e(n.Value), values), nil
	case *Alloc:
		if len(values) == 0 {
			return Block{n}, nil
		}
		copied := *n.Buffer
		copied.Tensor = flat(n.Buffer.Tensor.Name, n.Buffer.Tensor.DType, n.Buffer.Elements())
		buffers[n.Buffer.Tensor] = &copied
		return Block{&Alloc{&copied}}, nil
	case *Store:
		buffer := n.Buffer
		if r, ok := buffers[buffer.Tensor]; ok {
			buffer = r
		}
		return Block{&Store{buffer, e(n.Index), e(n.Value)}}, nil
	default:
		return nil, fmt.Errorf("lower: unknown statement %T", st)
	}
}

func (x *expander) unroll(n *For, values map[*expr.Var]expr.Expr, buffers map[*expr.Tensor]*Buffer) (Block, error) {
	var out Block
	for k := range n.Extent {
		values[n.Var] = expr.I(k)
		body, err := x.block(n.Body, values, buffers)
		if err != nil {
			return nil, err
		}
		out = append(out, body...)
	}
	delete(values, n.Var)
	return out, nil
}

// let gives each copy of an unrolled Let a variable of its own.
func (x *expander) let(n *Let, value expr.Expr, values map[*expr.Var]expr.Expr) Block {
	if _, constant := value.(*expr.Int); constant {
		values[n.Var] = value
		return nil
	}
	if len(values) == 0 {
		return Block{&Let{n.Var, value}}
	}
	fresh := *n.Var
	values[n.Var] = &fresh
	return Block{&Let{&fresh, value}}
}

func (x *expander) vectorize(n *For, values map[*expr.Var]expr.Expr, buffers map[*expr.Tensor]*Buffer) (Block, error) {
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
		values[n.Var] = expr.AddE(expr.I(base), lane)
		if size == 1 {
			values[n.Var] = expr.I(base)
		}
		body, err := x.block(n.Body, values, buffers)
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
	delete(values, n.Var)
	return out, nil
}

func (x *expander) branch(n *If, cond expr.Expr, values map[*expr.Var]expr.Expr, buffers map[*expr.Tensor]*Buffer) (Block, error) {
	if c, ok := cond.(*expr.Int); ok {
		if c.Value != 0 {
			return x.block(n.Then, values, buffers)
		}
		return x.block(n.Else, values, buffers)
	}
	then, err := x.block(n.Then, values, buffers)
	if err != nil {
		return nil, err
	}
	otherwise, err := x.block(n.Else, values, buffers)
	return Block{&If{cond, then, otherwise}}, err
}

func rewrite(e expr.Expr, values map[*expr.Var]expr.Expr, buffers map[*expr.Tensor]*Buffer) expr.Expr {
	if len(values) == 0 && len(buffers) == 0 {
		return e
	}
	replaced := expr.Rewrite(e, func(x expr.Expr) expr.Expr {
		switch n := x.(type) {
		case *expr.Var:
			if r, ok := values[n]; ok {
				return r
			}
		case *expr.Load:
			if r, ok := buffers[n.Tensor]; ok {
				return &expr.Load{Tensor: r.Tensor, Index: n.Index}
			}
		}
		return x
	})
	return expr.Simplify(replaced)
}
