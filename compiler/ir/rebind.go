package ir

import (
	"maps"

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
			if b := Written(st); b != nil && bound[b.Tensor] != nil {
				st = writtenTo(st, bound[b.Tensor])
			}
		}
		out[k] = st
	}
	return out
}

// writtenTo returns a statement that writes to another buffer.
func writtenTo(st Stmt, b *Buffer) Stmt {
	switch n := st.(type) {
	case *Store:
		c := *n
		c.Buffer = b
		return &c
	case *Combine:
		c := *n
		c.Buffer = b
		return &c
	case *DotProduct:
		c := *n
		c.Buffer = b
		return &c
	case *Squares:
		c := *n
		c.Sums = b
		return &c
	case *SquareProduct:
		c := *n
		c.Sums = b
		return &c
	case *Transpose:
		c := *n
		c.To = b
		return &c
	case *Copy:
		c := *n
		c.To = b
		return &c
	case *CopyAsync:
		c := *n
		c.To = b
		return &c
	case *TMACopy:
		c := *n
		c.To = b
		return &c
	case *MbarrierInit:
		return &MbarrierInit{b}
	case *MbarrierInvalidate:
		return &MbarrierInvalidate{b}
	case *LoadMatrices:
		c := *n
		c.To = b
		return &c
	case *MultiplyMatrices:
		c := *n
		c.Sum = b
		return &c
	case *MultiplyShared:
		c := *n
		c.Sum = b
		return &c
	case *TileStore:
		c := *n
		c.To = b
		return &c
	}
	return st
}
