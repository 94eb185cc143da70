package pass

import "github.com/tilth-dev/tilth/compiler/ir"

// StorageLimits are the memory limits of a backend's functions.
type StorageLimits struct {
	// StackBytes is the size of the largest buffer on the stack, FrameBytes that of all stack buffers of a function.
	StackBytes, FrameBytes int64
	// AlignBytes is the alignment of workspace buffers, a power of two.
	AlignBytes int64
}

// Storage assigns each scratch buffer outside registers its place. Small buffers lie on the stack, unless other
// workers use them. The others lie in the workspace shared by all workers or, inside a parallel loop, in the
// worker's own. Buffers with disjoint scopes share space. The body of a parallel loop is a function of its own.
func Storage(f *ir.Func, l StorageLimits) *ir.Func {
	p := &storagePlacer{limits: l, places: map[*ir.Alloc]storagePlace{}}
	p.block(f.Body, &frame{space: ir.Workspace, max: &p.workspaceBytes})
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

// Scopes puts the buffers of a schedule for GPUs into scratch memory, for processors, which lack the memories of GPUs.
func Scopes(f *ir.Func) *ir.Func {
	if !ir.Any(f.Body, func(a *ir.Alloc) bool { return a.Buffer.Space != ir.Scratch }) {
		return f
	}
	return f.With(ir.Rebind(f.Body, func(a *ir.Alloc, _ ir.Block) *ir.Buffer {
		b := *a.Buffer
		b.Space = ir.Scratch
		return &b
	}))
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
	// space is the memory space of buffers outside the stack, max the peak size in it.
	space ir.Space
	max   *int64
	// used is the current size of the workspace, stack that of the stack.
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
				inner = &frame{space: ir.Worker, max: &p.workerBytes}
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
	*f.max = max(*f.max, f.used)
	return storagePlace{f.space, offset}
}
