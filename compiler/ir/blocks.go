package ir

import (
	"maps"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// Allocated maps tensors to the buffers that are allocated at a point of a kernel.
type Allocated map[*expr.Tensor]*Buffer

// InRegisters reports whether a tensor is in registers.
func (a Allocated) InRegisters(t *expr.Tensor) bool {
	b := a[t]
	return b != nil && b.Space == Register
}

// Bits returns the largest width of a tensor's elements in bits; 0 if unknown.
func (a Allocated) Bits(t *expr.Tensor) int64 {
	if b := a[t]; b != nil {
		return b.Bits
	}
	return 0
}

// MapBlocks returns a kernel in which each block is replaced by the result of change, inner ones first, given the
// buffers allocated in the block or around it. It skips bodies of vector loops.
func MapBlocks(f *Func, change func(b Block, in Allocated) Block) *Func {
	return f.With(mapBlocks(f.Body, change, Allocated{}))
}

func mapBlocks(b Block, change func(Block, Allocated) Block, around Allocated) Block {
	in := maps.Clone(around)
	for _, st := range b {
		if n, ok := st.(*Alloc); ok {
			in[n.Buffer.Tensor] = n.Buffer
		}
	}
	out := make(Block, len(b))
	for k, st := range b {
		switch n := st.(type) {
		case *For:
			if n.Kind != Vector {
				st = n.With(mapBlocks(n.Body, change, in))
			}
		case *If:
			st = &If{Cond: n.Cond, Then: mapBlocks(n.Then, change, in), Else: mapBlocks(n.Else, change, in)}
		}
		out[k] = st
	}
	return change(out, in)
}

// MapLaunches replaces the body of each launch on a GPU, which is an outermost loop over blocks.
func MapLaunches(f *Func, change func(Block) Block) *Func {
	body := make(Block, len(f.Body))
	for k, st := range f.Body {
		if n, ok := st.(*For); ok && n.Kind == Blocks {
			st = n.With(change(n.Body))
		}
		body[k] = st
	}
	return f.With(body)
}

// MapInside replaces the blocks inside a loop or a branch, and returns any other statement as it is.
func MapInside(st Stmt, change func(Block) Block) Stmt {
	switch n := st.(type) {
	case *For:
		return n.With(change(n.Body))
	case *If:
		return &If{Cond: n.Cond, Then: change(n.Then), Else: change(n.Else)}
	}
	return st
}

// MapLoops returns a program in which each loop is replaced by the result of change, inner loops first.
func MapLoops(f *Func, change func(*For) Stmt) *Func { return f.With(mapLoops(f.Body, change)) }

func mapLoops(b Block, change func(*For) Stmt) Block {
	out := make(Block, len(b))
	for k, st := range b {
		switch n := st.(type) {
		case *For:
			st = change(n.With(mapLoops(n.Body, change)))
		case *If:
			st = &If{Cond: n.Cond, Then: mapLoops(n.Then, change), Else: mapLoops(n.Else, change)}
		}
		out[k] = st
	}
	return out
}

// Changed returns the tensors that a block allocates or writes.
func Changed(b Block) map[*expr.Tensor]bool {
	changed := map[*expr.Tensor]bool{}
	Visit(b, func(st Stmt) {
		if a, ok := st.(*Alloc); ok {
			changed[a.Buffer.Tensor] = true
		}
		if w := Written(st); w != nil {
			changed[w.Tensor] = true
		}
	})
	return changed
}
