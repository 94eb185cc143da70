// The storage pass is the pass that decides where scratch buffers lie that are not in registers: on the stack, or at
// which place of a workspace.

package pass

import "github.com/tilth-dev/tilth/compiler/ir"

// StorageLimits are what a backend's functions have room for.
type StorageLimits struct {
	// StackBytes is the largest buffer on the stack, FrameBytes the most that all of a function's take.
	StackBytes, FrameBytes int64
	// AlignBytes is the alignment of buffers in a workspace, a power of two.
	AlignBytes int64
}

// Storage gives each scratch buffer its place. Small ones lie on the stack, unless other workers use them. The
// others lie in the workspace of all workers, or, inside of a parallel loop, in the worker's own; those whose scopes
// do not meet share places. The body of a parallel loop is a function of its own.
func Storage(f *ir.Func, l StorageLimits) *ir.Func {
	p := &storagePlacer{limits: l, places: map[*ir.Alloc]storagePlace{}}
	p.block(f.Body, &frame{space: ir.Workspace, most: &p.workspaceBytes})
	out := f.With(ir.Rebind(f.Body, func(a *ir.Alloc, _ ir.Block) *ir.Buffer {
		at, ok := p.places[a]
		if !ok {
			return a.Buffer
		}
		placed := *a.Buffer
		placed.Space, placed.OffsetBytes = at.space, at.offset
		return &placed
	}))
	out.WorkspaceBytes, out.WorkerBytes = p.workspaceBytes, p.workerBytes
	return out
}

type storagePlace struct {
	space  ir.Space
	offset int64
}

type storagePlacer struct {
	limits                      StorageLimits
	places                      map[*ir.Alloc]storagePlace
	workspaceBytes, workerBytes int64
}

// frame is the memory of one function.
type frame struct {
	// space is where what is not on the stack lies, most the greatest size of that so far.
	space ir.Space
	most  *int64
	// used is what the buffers in scope take of the workspace, stack what all take of the stack.
	used, stack int64
}

func (p *storagePlacer) block(b ir.Block, f *frame) {
	used := f.used
	for k, st := range b {
		switch n := st.(type) {
		case *ir.Alloc:
			if n.Buffer.Space == ir.Scratch {
				p.places[n] = p.place(n.Buffer, b[k+1:], f)
			}
		case *ir.If:
			p.block(n.Then, f)
			p.block(n.Else, f)
		case *ir.For:
			inner := f
			if n.Kind == ir.Parallel {
				inner = &frame{space: ir.Worker, most: &p.workerBytes}
			}
			p.block(n.Body, inner)
		}
	}
	f.used = used
}

func (p *storagePlacer) place(b *ir.Buffer, scope ir.Block, f *frame) storagePlace {
	if b.Bytes() <= p.limits.StackBytes && f.stack+b.Bytes() <= p.limits.FrameBytes && !ir.HasParallel(scope) {
		f.stack += b.Bytes()
		return storagePlace{space: ir.Stack}
	}
	offset := f.used
	f.used += (b.Bytes() + p.limits.AlignBytes - 1) / p.limits.AlignBytes * p.limits.AlignBytes
	*f.most = max(*f.most, f.used)
	return storagePlace{f.space, offset}
}
