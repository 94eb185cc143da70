package pass

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// maxBytes is the largest size of a single copy.
const maxBytes = 16

// Wide merges each vector loop that copies contiguous elements from global to shared memory into one copy, if the
// first element is aligned to the copy's size in both, given aligned arrays. It expands other vector loops, since
// GPU threads have no lanes of their own.
func Wide(f *ir.Func) *ir.Func {
	return ir.MapLaunches(f, func(b ir.Block) ir.Block { return ir.MapEach(b, wideLaunch{ir.Changed(b)}.loop) })
}

// wideLaunch holds the tensors that a launch allocates or writes.
type wideLaunch struct{ changed map[*expr.Tensor]bool }

func (l wideLaunch) loop(n *ir.For) ir.Stmt {
	if n.Kind != ir.Vector {
		return nil
	}
	if len(n.Body) == 1 {
		if c := l.copied(n, n.Body[0]); c != nil {
			return c
		}
	}
	unrolled := n.With(n.Body)
	unrolled.Kind = ir.Unrolled
	return unrolled
}

// copied returns the copy that a vector loop makes, or nil.
func (l wideLaunch) copied(n *ir.For, st ir.Stmt) ir.Stmt {
	store, ok := st.(*ir.Store)
	if !ok || store.Buffer.Space != ir.Shared {
		return nil
	}
	from, valid, ok := schedule.CopyOf(store.Value)
	bytes := store.Buffer.Tensor.DType.Bytes() * n.Extent
	if !ok || l.changed[from.Tensor] || valid != nil && expr.Uses(valid, n.Var) || bytes > maxBytes || bytes&(bytes-1) != 0 {
		return nil
	}
	to, okTo := expr.Neighbours(store.Index, n.Var, n.Extent)
	at, okAt := expr.Neighbours(from.Index[0], n.Var, n.Extent)
	if !okTo || !okAt {
		return nil
	}
	return &ir.Copy{To: store.Buffer, Index: to, From: from.Tensor.At(at).(*expr.Load), Elements: n.Extent, Valid: valid}
}
