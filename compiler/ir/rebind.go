package ir

import (
	"maps"
	"reflect"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// Rebind replaces the buffers that a block allocates by the results of f for each Alloc, given the rest of its
// block. The tensors stay. Two versions of a nest may allocate the same tensor and place it differently.
func Rebind(b Block, f func(a *Alloc, scope Block) *Buffer) Block {
	return rebind(b, f, map[*expr.Tensor]*Buffer{})
}

func rebind(b Block, f func(*Alloc, Block) *Buffer, bound map[*expr.Tensor]*Buffer) Block {
	bound = maps.Clone(bound)
	out := make(Block, len(b))
	for k, st := range b {
		switch n := st.(type) {
		case *Alloc:
			buffer := f(n, b[k+1:])
			bound[n.Buffer.Tensor] = buffer
			st = &Alloc{Buffer: buffer}
		case *For:
			st = n.With(rebind(n.Body, f, bound))
		case *If:
			st = &If{Cond: n.Cond, Then: rebind(n.Then, f, bound), Else: rebind(n.Else, f, bound)}
		default:
			if b := Written(st); b != nil && b.Space != Tile && bound[b.Tensor] != nil { // tiles are not in memory
				st = writtenTo(st, bound[b.Tensor])
			}
		}
		out[k] = st
	}
	return out
}

// writtenTo returns a copy of a statement that writes to another buffer.
func writtenTo(st Stmt, b *Buffer) Stmt {
	c := reflect.New(reflect.TypeOf(st).Elem())
	c.Elem().Set(reflect.ValueOf(st).Elem())
	st = c.Interface().(Stmt)
	*written(st) = b
	return st
}
