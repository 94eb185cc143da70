package pass

import (
	"cmp"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// maxSlots limits the variables of one buffer. Larger buffers stay in memory.
const maxSlots = 256

// Promote keeps scratch buffers in registers: an unrolled tile of accumulators becomes named vector variables. A
// buffer qualifies if each access has a constant index, or is a lane of a vector that starts at one, and if all
// accesses agree on the vectors.
func Promote(f *ir.Func) *ir.Func {
	return f.With(ir.Rebind(f.Body, func(a *ir.Alloc, scope ir.Block) *ir.Buffer {
		found, ok := slots(scope, a.Buffer)
		if !ok {
			return a.Buffer
		}
		kept := *a.Buffer
		kept.Space, kept.Slots = ir.Register, found
		return &kept
	}))
}

// slots returns the variables that replace a buffer; ok is false if the buffer has to stay in memory.
func slots(scope ir.Block, b *ir.Buffer) (found []ir.Slot, ok bool) {
	s := &scan{tensor: b.Tensor, ok: true}
	s.block(scope, nil)
	if !s.ok {
		return nil, false
	}
	slices.SortFunc(s.found, func(a, b ir.Slot) int { return cmp.Or(cmp.Compare(a.Base, b.Base), cmp.Compare(b.Lanes, a.Lanes)) })
	var end int64
	for _, x := range s.found {
		switch {
		case x.Base < 0 || x.Base+x.Lanes > b.Elements(): // lanes excluded by a condition
			return nil, false
		case x.Base >= end:
			found = append(found, x)
			end = x.Base + x.Lanes
		case x.Lanes == 1 && x.Base < end: // one lane of a vector
		case x == found[len(found)-1]:
		default:
			return nil, false
		}
	}
	return found, len(found) <= maxSlots
}

// scan collects the accesses to a tensor.
type scan struct {
	tensor *expr.Tensor
	found  []ir.Slot
	ok     bool
}

func (s *scan) block(b ir.Block, lane *expr.Var) {
	for _, st := range b {
		switch n := st.(type) {
		case *ir.For:
			inner := lane
			if n.Kind == ir.Vector {
				inner = n.Var
			}
			if n.Kind == ir.Parallel && ir.Uses(n.Body, s.tensor) {
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
			if n.Buffer.Tensor == s.tensor {
				s.access(n.Index, lane)
			}
			s.expr(n.Index, lane)
			s.expr(n.Value, lane)
		case *ir.Call:
			s.ok = s.ok && !ir.Uses(ir.Block{n}, s.tensor)
		}
	}
}

func (s *scan) expr(e expr.Expr, lane *expr.Var) {
	for _, l := range expr.Loads(e) {
		if l.Tensor == s.tensor {
			s.access(l.Index[0], lane)
		}
	}
}

func (s *scan) access(index expr.Expr, lane *expr.Var) {
	l := expr.Linearize(index)
	switch {
	case len(l.Terms) == 0:
		s.add(ir.Slot{Base: l.Const, Lanes: 1})
	case len(l.Terms) == 1 && lane != nil && l.Terms[0].Atom == expr.Expr(lane) && l.Terms[0].Coef == 1:
		s.add(ir.Slot{Base: l.Const, Lanes: lane.Extent})
	default:
		s.ok = false
	}
}

func (s *scan) add(x ir.Slot) {
	if !slices.Contains(s.found, x) {
		s.found = append(s.found, x)
	}
	if len(s.found) > 4*maxSlots {
		s.ok = false
	}
}
