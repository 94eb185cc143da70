package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// Stream marks vector stores to streamed outputs as non-temporal, and the functions that contain such stores: these
// must fence before they signal other workers. A store qualifies if it has all lanes of its type and an aligned index.
func Stream(f *ir.Func, lanes func(array.DType) int64) *ir.Func {
	m := &marker{lanes: lanes}
	done := f.With(ir.MapEach(f.Body, m.loop))
	done.Streams = m.found
	return done
}

type marker struct {
	lanes func(array.DType) int64
	// found is set once the current function has such a store.
	found bool
}

func (m *marker) loop(n *ir.For) ir.Stmt {
	if n.Kind == ir.Vector {
		return n.With(m.vectors(n))
	}
	if n.Kind != ir.Parallel {
		return nil
	}
	body := &marker{lanes: m.lanes}
	done := n.With(ir.MapEach(n.Body, body.loop))
	done.Streams = body.found
	return done
}

// vectors marks the stores of a vector loop.
func (m *marker) vectors(n *ir.For) ir.Block {
	out := make(ir.Block, len(n.Body))
	for k, st := range n.Body {
		if s, ok := st.(*ir.Store); ok && m.streams(s, n) {
			streamed := *s
			streamed.Streamed, m.found = true, true
			st = &streamed
		}
		out[k] = st
	}
	return out
}

func (m *marker) streams(s *ir.Store, n *ir.For) bool {
	lanes := n.Extent
	if !s.Buffer.Streamed || lanes < 2 || lanes != m.lanes(s.Buffer.Tensor.DType) {
		return false
	}
	at := expr.Linearize(s.Index)
	if coef, linear := at.Coef(n.Var); !linear || coef != 1 {
		return false
	}
	at = at.Plus(expr.Linearize(n.Var), -1)
	return !slices.ContainsFunc(at.Terms, func(t expr.Term) bool { return t.Coef%lanes != 0 }) && at.Const%lanes == 0
}
