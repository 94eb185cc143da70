package codegen

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/loop"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// maxSlots bounds the named variables of one buffer; beyond it the buffer stays an array.
const maxSlots = 256

// slot is a run of a scratch buffer's elements that is kept in one variable: a vector of lanes, or a scalar.
type slot struct {
	base, lanes int64
}

// slots finds the variables that can stand for a scratch buffer: every store and load in its scope must have a
// constant index, and vector accesses must agree. ok is false when the buffer has to be memory. This is what turns an
// unrolled accumulator tile into named vector variables.
func slots(scope loop.Block, b *loop.Buffer) (found []slot, ok bool) {
	s := &slotScan{buffer: b.Tensor, ok: true}
	s.block(scope, nil)
	if !s.ok {
		return nil, false
	}
	slices.SortFunc(s.found, func(a, b slot) int {
		if a.base != b.base {
			return int(a.base - b.base)
		}
		return int(b.lanes - a.lanes)
	})
	var end int64
	for _, x := range s.found {
		switch {
		case x.base < 0 || x.base+x.lanes > b.Elements(): // lanes behind a condition that excludes them
			return nil, false
		case x.base >= end:
			found = append(found, x)
			end = x.base + x.lanes
		case x.lanes == 1 && x.base < end: // one lane of a vector
		case x == found[len(found)-1]:
		default:
			return nil, false
		}
	}
	return found, len(found) <= maxSlots
}

type slotScan struct {
	buffer *expr.Tensor
	found  []slot
	ok     bool
}

func (s *slotScan) block(b loop.Block, lane *expr.Var) {
	for _, st := range b {
		switch n := st.(type) {
		case *loop.For:
			inner := lane
			if n.Kind == schedule.Vectorized {
				inner = n.Var
			}
			if n.Kind == schedule.Parallel && usesBuffer(n.Body, s.buffer) {
				s.ok = false
			}
			s.block(n.Body, inner)
		case *loop.If:
			s.expr(n.Cond, lane)
			s.block(n.Then, lane)
			s.block(n.Else, lane)
		case *loop.Let:
			s.expr(n.Value, lane)
		case *loop.Store:
			if n.Buffer.Tensor == s.buffer {
				s.access(n.Index, lane)
			}
			s.expr(n.Index, lane)
			s.expr(n.Value, lane)
		}
	}
}

func (s *slotScan) expr(e expr.Expr, lane *expr.Var) {
	for _, l := range expr.Loads(e) {
		if l.Tensor == s.buffer {
			s.access(l.Index[0], lane)
		}
	}
}

func (s *slotScan) access(index expr.Expr, lane *expr.Var) {
	l := expr.Linearize(index)
	switch {
	case len(l.Terms) == 0:
		s.add(slot{l.Const, 1})
	case len(l.Terms) == 1 && lane != nil && l.Terms[0].Atom == expr.Expr(lane) && l.Terms[0].Coef == 1:
		s.add(slot{l.Const, lane.Extent})
	default:
		s.ok = false
	}
}

func (s *slotScan) add(x slot) {
	if !slices.Contains(s.found, x) {
		s.found = append(s.found, x)
	}
	if len(s.found) > 4*maxSlots {
		s.ok = false
	}
}

func usesBuffer(b loop.Block, t *expr.Tensor) bool {
	used := false
	visit(b, func(st loop.Stmt) {
		each := func(e expr.Expr) {
			for _, l := range expr.Loads(e) {
				used = used || l.Tensor == t
			}
		}
		switch n := st.(type) {
		case *loop.If:
			each(n.Cond)
		case *loop.Let:
			each(n.Value)
		case *loop.Store:
			used = used || n.Buffer.Tensor == t
			each(n.Index)
			each(n.Value)
		}
	})
	return used
}

// visit calls f on every statement of a block, outer ones first.
func visit(b loop.Block, f func(loop.Stmt)) {
	for _, st := range b {
		f(st)
		switch n := st.(type) {
		case *loop.For:
			visit(n.Body, f)
		case *loop.If:
			visit(n.Then, f)
			visit(n.Else, f)
		}
	}
}

func hasParallel(b loop.Block) bool {
	found := false
	visit(b, func(st loop.Stmt) {
		f, ok := st.(*loop.For)
		found = found || ok && f.Kind == schedule.Parallel
	})
	return found
}
