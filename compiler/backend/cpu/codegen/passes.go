package codegen

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/machine"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// passes returns the steps between lowering and printing, in order.
func (u *Unit) passes() []pass.Step {
	return []pass.Step{
		pass.Total("lookup", u.lookUp),
		pass.Total("partition", pass.Partition),
		{Name: "unroll", Run: func(f *ir.Func) (*ir.Func, error) { return pass.Unroll(f, u.lanes) }},
		pass.Total("padding", pass.Padding),
		pass.Total("fold", func(f *ir.Func) *ir.Func { return pass.Fold(f, u.lanes) }),
		pass.Total("tiles", func(f *ir.Func) *ir.Func { return pass.Tiles(f, u.hasTiles) }),
		pass.Total("promote", pass.Promote),
		pass.Total("storage", func(f *ir.Func) *ir.Func { return pass.Storage(f, u.room) }),
		pass.Total("outline", pass.Outline),
		pass.Total("epilogues", func(f *ir.Func) *ir.Func { return pass.PrefetchEpilogues(f, u.caches) }),
		pass.Total("transpose", pass.Transpose),
		pass.Total("dot", func(f *ir.Func) *ir.Func { return pass.Dot(f, machine.HasDot) }),
		pass.Total("squares", func(f *ir.Func) *ir.Func { return pass.Squares(f, machine.HasSquares) }),
		pass.Total("across", func(f *ir.Func) *ir.Func { return pass.Across(f, cprint.Computes) }),
		pass.Total("lanewise", func(f *ir.Func) *ir.Func { return pass.Lanewise(f, forms{}) }),
		pass.Total("stream", func(f *ir.Func) *ir.Func { return pass.Stream(f, u.lanes) }),
		pass.Total("cse", pass.CSE),
		pass.Total("prefetch", func(f *ir.Func) *ir.Func { return pass.Prefetch(f, u.caches.LineBytes) }),
		pass.Total("separate", func(f *ir.Func) *ir.Func { return pass.Separate(f, u.vectorRegisters) }),
	}
}

// kernelPasses returns the passes of a kernel. The reference uses the plain ones.
func (u *Unit) kernelPasses() []pass.Step {
	if u.vectorBytes == 0 {
		return u.plainPasses()
	}
	return u.passes()
}

// plainPasses returns the passes without lookups and partition. Programs that copy have neither functions to look up
// nor conditions to split on, and the reference stays as plain as possible.
func (u *Unit) plainPasses() []pass.Step { return u.passes()[2:] }

// room limits the stack of a kernel's functions. Vectors are aligned to a cache line, so that none crosses one.
var room = pass.StorageLimits{StackBytes: 16 << 10, FrameBytes: 128 << 10, AlignBytes: 64}

// bareRoom is the limit for programs without an operating system, whose stacks have a few KiB. Larger buffers go into
// the arena, which counts them.
var bareRoom = pass.StorageLimits{StackBytes: 256, FrameBytes: 512, AlignBytes: 64}

// observe, if not nil, receives the program after each step.
var observe func(step string, f *ir.Func)

// lowered lowers a schedule and runs passes on the program. It calls see, if not nil, after each step.
func lowered(s *schedule.Schedule, passes []pass.Step, see func(step string, f *ir.Func)) (*ir.Func, error) {
	f, err := lower.Schedule(s)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(s.Stages, func(g *schedule.Stage) bool { return g.Scope != schedule.ByPlace }) {
		f = withoutScopes(f)
	}
	return pass.Apply(f, passes, see)
}

// withoutScopes returns a kernel whose buffers ignore GPU memory scopes and go wherever a processor has room.
func withoutScopes(f *ir.Func) *ir.Func {
	return f.With(ir.Rebind(f.Body, func(a *ir.Alloc, _ ir.Block) *ir.Buffer {
		b := *a.Buffer
		b.Space = ir.Scratch
		return &b
	}))
}

// Dump returns a kernel after each step, and its source, for debugging. Without a target it prints scalar C.
func Dump(s *schedule.Schedule, t *target.Target) (steps []backend.Step, err error) {
	u := NewUnit(t)
	if _, err := lowered(s, u.kernelPasses(), func(step string, f *ir.Func) {
		steps = append(steps, backend.Step{Name: step, Text: f.Text()})
	}); err != nil {
		return nil, err
	}
	if _, err := u.AddWithPacks("kernel", schedule.Digest(s.Trace()), s); err != nil {
		return nil, err
	}
	return append(steps, backend.Step{Name: backend.Source, Text: u.Source()}), nil
}
