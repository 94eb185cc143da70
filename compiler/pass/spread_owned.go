package pass

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// spreadUse is an access to a buffer in a loop over threads.
type spreadUse struct {
	loop *ir.For
	// mine holds the terms of the index that depend on the thread, in terms of the variable thread; rest holds
	// those that vary within a thread.
	mine, rest expr.Linear
	// guards lists the conditions of the access.
	guards []expr.Expr
}

// thread stands for the variables of all loops over threads.
var thread = &expr.Var{Name: "thread", Extent: maxThreads}

const (
	// maxThreads is the largest number of threads in a block, on any GPU.
	maxThreads = 1024
	// maxElements limits the elements of a buffer that are checked one by one.
	maxElements = 1 << 18
)

// owned distributes a buffer over threads and rewrites the statements that use it. A thread numbers its elements in
// buffer order.
func owned(b *ir.Buffer, scope ir.Block) (*ir.Buffer, ir.Block, error) {
	var uses []spreadUse
	var err error
	walker{b.Tensor, func(in spreadPlace, index expr.Expr) {
		if in.loop == nil {
			err = fmt.Errorf("spread: buffer %s in registers is used outside of loops on threads", b.Tensor.Name)
			return
		}
		u := newUse(in.loop, index)
		for _, g := range in.guards {
			u.guards = append(u.guards, expr.Substitute(g, map[*expr.Var]expr.Expr{in.loop.Var: thread}))
		}
		uses = append(uses, u)
	}}.block(scope, spreadPlace{})
	if err != nil {
		return nil, nil, err
	}
	d, err := digitsOf(b, uses)
	if err != nil {
		return nil, nil, err
	}
	own := &ir.Buffer{Tensor: ir.Flat(b.Tensor.Name, b.Tensor.DType, d.elements()), Space: ir.Private}
	return own, rewrite(scope, b, own, d), nil
}

// spreadPlace describes the position of an access: its loop over threads, if any, and its conditions.
type spreadPlace struct {
	loop   *ir.For
	guards []expr.Expr
}

func (p spreadPlace) under(cond expr.Expr) spreadPlace {
	return spreadPlace{p.loop, append(slices.Clip(p.guards), cond)}
}

// walker visits each load and store of a tensor.
type walker struct {
	tensor *expr.Tensor
	found  func(in spreadPlace, index expr.Expr)
}

func (w walker) block(b ir.Block, in spreadPlace) {
	for _, st := range b {
		switch n := st.(type) {
		case *ir.For:
			inner := in
			if n.Kind == ir.Threads {
				inner.loop = n
			}
			w.block(n.Body, inner)
			continue
		case *ir.If:
			w.loads(n.Cond, in)
			w.block(n.Then, in.under(n.Cond))
			w.block(n.Else, in.under(expr.Un(expr.Not, n.Cond)))
			continue
		case *ir.Store:
			if n.Buffer.Tensor == w.tensor {
				w.found(in, n.Index)
			}
		}
		ir.VisitExprs(ir.Block{st}, func(e expr.Expr) { w.loads(e, in) })
	}
}

func (w walker) loads(e expr.Expr, in spreadPlace) {
	for _, l := range expr.Loads(e) {
		if l.Tensor == w.tensor {
			w.found(in, l.Index[0])
		}
	}
}

// newUse splits an index.
func newUse(loop *ir.For, index expr.Expr) spreadUse {
	u := spreadUse{loop: loop}
	for _, t := range expr.Linearize(expr.Substitute(index, map[*expr.Var]expr.Expr{loop.Var: thread})).Terms {
		if expr.Uses(t.Atom, thread) {
			u.mine.Terms = append(u.mine.Terms, t)
		} else {
			u.rest.Terms = append(u.rest.Terms, t)
		}
	}
	u.rest.Const = expr.Linearize(index).Const
	return u
}

// digits describes the elements of a thread as a mixed-radix number: digit k has stride steps[k].coef and the given
// extent. A smaller stride times its extent never exceeds the next larger stride.
type digits []digit

type digit struct{ coef, extent int64 }

func (d digits) elements() int64 {
	n := int64(1)
	for _, x := range d {
		n *= x.extent
	}
	return n
}

// digitsOf finds the strides that all uses of a buffer share, and proves that no two threads share an element.
func digitsOf(b *ir.Buffer, uses []spreadUse) (digits, error) {
	var d digits
	for _, u := range uses {
		if len(u.mine.Plus(uses[0].mine, -1).Terms) > 0 {
			return nil, fmt.Errorf("spread: buffer %s in registers is read by another thread than the one that wrote it; keep its stage in shared memory", b.Tensor.Name)
		}
		for _, t := range u.rest.Terms {
			v, ok := t.Atom.(*expr.Var)
			if !ok || t.Coef < 1 {
				return nil, fmt.Errorf("spread: buffer %s in registers is not read by plain loops", b.Tensor.Name)
			}
			d = d.with(digit{t.Coef, v.Extent})
		}
	}
	slices.SortFunc(d, func(x, y digit) int { return int(x.coef - y.coef) })
	d = d.withConstants(uses)
	for k := 1; k < len(d); k++ {
		if d[k].coef < d[k-1].coef*d[k-1].extent {
			return nil, fmt.Errorf("spread: buffer %s in registers is read by loops that overlap", b.Tensor.Name)
		}
	}
	return d, d.checkOwners(b, uses)
}

func (d digits) with(x digit) digits {
	for k := range d {
		if d[k].coef == x.coef {
			d[k].extent = max(d[k].extent, x.extent)
			return d
		}
	}
	return append(d, x)
}

// withConstants extends the digits to cover constant indices.
func (d digits) withConstants(uses []spreadUse) digits {
	for _, u := range uses {
		rest := u.rest.Const
		for k := len(d) - 1; k >= 0; k-- {
			if k == len(d)-1 {
				d[k].extent = max(d[k].extent, rest/d[k].coef+1)
			}
			rest %= d[k].coef
		}
		if rest > 0 {
			d = slices.Insert(d, 0, digit{1, rest + 1})
		}
	}
	return d
}

// local returns the number of an element within its thread.
func (d digits) local(rest expr.Linear) expr.Expr {
	index, weight := expr.I(0), int64(1)
	for k, x := range d {
		part := rest.Const / x.coef
		if k+1 < len(d) {
			part = rest.Const % d[k+1].coef / x.coef
		}
		sum := expr.I(part)
		for _, t := range rest.Terms {
			if t.Coef == x.coef {
				sum = expr.AddE(sum, t.Atom)
			}
		}
		index = expr.AddE(index, expr.MulE(sum, expr.I(weight)))
		weight *= x.extent
	}
	return expr.Linearize(index).Expr()
}

// checkOwners proves by enumeration that no two threads use the same element.
func (d digits) checkOwners(b *ir.Buffer, uses []spreadUse) error {
	threads := int64(1)
	for _, u := range uses {
		threads = max(threads, u.loop.Extent)
	}
	if threads > maxThreads || d.elements() > maxElements/threads {
		return fmt.Errorf("spread: buffer %s in registers has too many elements to be spread over %d threads", b.Tensor.Name, threads)
	}
	first := make([]int64, threads)
	for t := range threads {
		at := expr.Linearize(atThread(uses[0].mine.Expr(), t))
		if len(at.Terms) > 0 {
			return fmt.Errorf("spread: buffer %s in registers is not spread by a plain index", b.Tensor.Name)
		}
		first[t] = at.Const
	}
	owner := map[int64]int64{}
	for _, u := range uses {
		offsets := u.offsets()
		for t := range u.loop.Extent {
			if !u.doneBy(t) {
				continue
			}
			for _, at := range offsets {
				if other, taken := owner[first[t]+at]; taken && other != t {
					return fmt.Errorf("spread: element %d of buffer %s in registers is used by threads %d and %d", first[t]+at, b.Tensor.Name, other, t)
				}
				owner[first[t]+at] = t
			}
		}
	}
	return nil
}

// offsets returns the elements that a thread uses, relative to its first one.
func (u spreadUse) offsets() []int64 {
	list := []int64{u.rest.Const}
	for _, t := range u.rest.Terms {
		var next []int64
		for _, at := range list {
			for k := range t.Atom.(*expr.Var).Extent {
				next = append(next, at+k*t.Coef)
			}
		}
		list = next
	}
	return list
}

// doneBy reports whether the guards allow thread t to make the access.
func (u spreadUse) doneBy(t int64) bool {
	return !slices.ContainsFunc(u.guards, func(g expr.Expr) bool {
		v, known := expr.Simplify(atThread(g, t)).(*expr.Int)
		return known && v.Value == 0
	})
}

// atThread substitutes the number of a thread.
func atThread(e expr.Expr, t int64) expr.Expr {
	return expr.Substitute(e, map[*expr.Var]expr.Expr{thread: expr.I(t)})
}

// rewrite replaces the accesses to a buffer by accesses to each thread's part.
func rewrite(b ir.Block, from, to *ir.Buffer, d digits) ir.Block {
	return ir.MapEach(b, func(n *ir.For) ir.Stmt {
		if n.Kind != ir.Threads {
			return nil
		}
		return n.With(inThreads(n.Body, n, from, to, d))
	})
}

// inThreads rewrites the body of a loop over threads.
func inThreads(b ir.Block, loop *ir.For, from, to *ir.Buffer, d digits) ir.Block {
	local := func(index expr.Expr) expr.Expr { return d.local(newUse(loop, index).rest) }
	read := func(e expr.Expr) expr.Expr {
		return expr.RewriteLoads(e, from.Tensor, func(l *expr.Load) expr.Expr { return to.Tensor.At(local(l.Index[0])) })
	}
	return ir.MapEach(ir.Rewrite(b, read), func(n *ir.Store) ir.Stmt {
		if n.Buffer.Tensor != from.Tensor {
			return n
		}
		return &ir.Store{Buffer: to, Index: local(n.Index), Value: n.Value}
	})
}
