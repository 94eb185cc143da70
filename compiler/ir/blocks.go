package ir

import (
	"maps"
	"reflect"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// Allocated maps tensors to the buffers that are allocated at a point of a kernel.
type Allocated map[*expr.Tensor]*Buffer

// InRegisters reports whether a tensor is in registers.
func (a Allocated) InRegisters(t *expr.Tensor) bool {
	b := a[t]
	return b != nil && b.Space == Register
}

// Space returns the memory space of a tensor; Argument for one that is not allocated.
func (a Allocated) Space(t *expr.Tensor) Space {
	if b := a[t]; b != nil {
		return b.Space
	}
	return Argument
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
	inside := func(b Block) Block { return mapBlocks(b, change, in) }
	out := MapEach(b, func(st Stmt) Stmt {
		if n, ok := st.(*For); ok && n.Kind == Vector {
			return st
		}
		return MapInside(st, inside)
	})
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

// MapEach replaces each statement of type S by the one that change returns, or, if that is nil, those inside it.
func MapEach[S Stmt](b Block, change func(S) Stmt) Block {
	out := make(Block, len(b))
	for k, st := range b {
		if n, ok := st.(S); ok {
			if out[k] = change(n); out[k] != nil {
				continue
			}
		}
		out[k] = MapInside(st, func(b Block) Block { return MapEach(b, change) })
	}
	return out
}

// MapLoops returns a program in which each loop is replaced by the result of change, inner loops first.
func MapLoops(f *Func, change func(*For) Stmt) *Func { return f.With(mapLoops(f.Body, change)) }

func mapLoops(b Block, change func(*For) Stmt) Block {
	return MapEach(b, func(n *For) Stmt { return change(n.With(mapLoops(n.Body, change))) })
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
	if c, ok := st.(*Call); ok {
		st = Exec(c.Instruction, slices.Clone(c.Args)...)
	} else {
		c := reflect.New(reflect.TypeOf(st).Elem())
		c.Elem().Set(reflect.ValueOf(st).Elem())
		st = c.Interface().(Stmt)
	}
	*written(st) = b
	return st
}

// PerfectNest is a store in perfectly nested loops, outermost first, where Guard holds, if that is not nil.
type PerfectNest struct {
	Loops []*For
	Guard expr.Expr
	Store *Store
}

// PerfectNestOf matches a nest whose iterations depend on no workers and threads; ok is false for other statements.
func PerfectNestOf(st Stmt) (n PerfectNest, ok bool) {
	for {
		var body Block
		switch s := st.(type) {
		case *For:
			if !s.InOrder() {
				return n, false
			}
			n.Loops, body = append(n.Loops, s), s.Body
		case *If:
			if n.Guard != nil || len(s.Else) > 0 {
				return n, false
			}
			n.Guard, body = s.Cond, s.Then
		case *Store:
			n.Store = s
			return n, true
		}
		if len(body) != 1 {
			return n, false
		}
		st = body[0]
	}
}

// InOrder reports whether all iterations of a loop may run one after the other.
func (n *For) InOrder() bool {
	return n.Range == nil && slices.Contains([]Kind{Serial, Unrolled, Vector, Dot, Matrices}, n.Kind)
}

// Range restricts the values of a loop variable, uniformly for all threads of a block: from First, before End, with
// a stride. All are below the loop's extent.
type Range struct {
	First, End expr.Expr
	Every      int64
	// Mean is the average number of values.
	Mean float64
}

// Rewritten returns a range with its ends replaced; nil stays nil.
func (r *Range) Rewritten(f func(expr.Expr) expr.Expr) *Range {
	if r == nil {
		return nil
	}
	c := *r
	c.First, c.End = f(r.First), f(r.End)
	return &c
}

// Tiles describes the tiles that the blocks of a launch share: their number, and the share of the block with most.
type Tiles struct {
	Count int64
	Max   float64
}
