package codegen

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
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
func slots(scope ir.Block, b *ir.Buffer) (found []slot, ok bool) {
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

func (s *slotScan) block(b ir.Block, lane *expr.Var) {
	for _, st := range b {
		switch n := st.(type) {
		case *ir.For:
			inner := lane
			if n.Kind == ir.Vector {
				inner = n.Var
			}
			if n.Kind == ir.Parallel && usesBuffer(n.Body, s.buffer) {
				s.ok = false
			}
			s.block(n.Body, inner)
		case *ir.If:
			s.expr(n.Cond, lane)
			s.block(n.Then, lane)
			s.block(n.Else, lane)
		case *ir.Let:
			s.expr(n.Value, lane)
		case *ir.Store:
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

func usesBuffer(b ir.Block, t *expr.Tensor) bool {
	used := false
	ir.Visit(b, func(st ir.Stmt) {
		each := func(e expr.Expr) {
			for _, l := range expr.Loads(e) {
				used = used || l.Tensor == t
			}
		}
		switch n := st.(type) {
		case *ir.If:
			each(n.Cond)
		case *ir.Let:
			each(n.Value)
		case *ir.Store:
			used = used || n.Buffer.Tensor == t
			each(n.Index)
			each(n.Value)
		}
	})
	return used
}

func hasParallel(b ir.Block) bool {
	found := false
	ir.Visit(b, func(st ir.Stmt) {
		f, ok := st.(*ir.For)
		found = found || ok && f.Kind == ir.Parallel
	})
	return found
}
