package codegen

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/ctext"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/pass/across"
	"github.com/tilth-dev/tilth/compiler/pass/cse"
	"github.com/tilth-dev/tilth/compiler/pass/dot"
	"github.com/tilth-dev/tilth/compiler/pass/fold"
	"github.com/tilth-dev/tilth/compiler/pass/lanewise"
	"github.com/tilth-dev/tilth/compiler/pass/outline"
	"github.com/tilth-dev/tilth/compiler/pass/padding"
	"github.com/tilth-dev/tilth/compiler/pass/partition"
	"github.com/tilth-dev/tilth/compiler/pass/prefetch"
	"github.com/tilth-dev/tilth/compiler/pass/promote"
	"github.com/tilth-dev/tilth/compiler/pass/separate"
	"github.com/tilth-dev/tilth/compiler/pass/squares"
	"github.com/tilth-dev/tilth/compiler/pass/storage"
	"github.com/tilth-dev/tilth/compiler/pass/stream"
	"github.com/tilth-dev/tilth/compiler/pass/tiles"
	"github.com/tilth-dev/tilth/compiler/pass/transpose"
	"github.com/tilth-dev/tilth/compiler/pass/unroll"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// pass is a step from a program to another that computes the same.
type pass struct {
	name string
	run  func(*ir.Func) (*ir.Func, error)
}

// passes are what a kernel goes through between lowering and printing, in this order.
func (u *Unit) passes() []pass {
	always := func(run func(*ir.Func) *ir.Func) func(*ir.Func) (*ir.Func, error) {
		return func(f *ir.Func) (*ir.Func, error) { return run(f), nil }
	}
	return []pass{
		{"lookup", always(func(f *ir.Func) *ir.Func { return u.lookUp(f) })},
		{"partition", always(partition.Run)},
		{"unroll", func(f *ir.Func) (*ir.Func, error) { return unroll.Run(f, u.lanes) }},
		{"padding", always(padding.Run)},
		{"fold", always(func(f *ir.Func) *ir.Func { return fold.Run(f, u.lanes) })},
		{"tiles", always(func(f *ir.Func) *ir.Func { return tiles.Run(f, u.hasTiles) })},
		{"promote", always(promote.Run)},
		{"storage", always(func(f *ir.Func) *ir.Func { return storage.Run(f, u.room) })},
		{"outline", always(outline.Run)},
		{"epilogues", always(func(f *ir.Func) *ir.Func { return prefetch.Epilogues(f, u.caches) })},
		{"transpose", always(transpose.Run)},
		{"dot", always(func(f *ir.Func) *ir.Func { return dot.Run(f, hasDot) })},
		{"squares", always(func(f *ir.Func) *ir.Func { return squares.Run(f, hasSquares) })},
		{"across", always(func(f *ir.Func) *ir.Func { return across.Run(f, ctext.Computes) })},
		{"lanewise", always(func(f *ir.Func) *ir.Func { return lanewise.Run(f, forms{}) })},
		{"stream", always(func(f *ir.Func) *ir.Func { return stream.Run(f, u.lanes) })},
		{"cse", always(cse.Run)},
		{"prefetch", always(func(f *ir.Func) *ir.Func { return prefetch.Ahead(f, u.caches.LineBytes) })},
		{"separate", always(func(f *ir.Func) *ir.Func { return separate.Run(f, u.vectorRegisters) })},
	}
}

// kernelPasses are those of a kernel: of the reference, the plain ones.
func (u *Unit) kernelPasses() []pass {
	if u.vectorBytes == 0 {
		return u.plainPasses()
	}
	return u.passes()
}

// plainPasses are the passes without lookups and partition, for programs that have no functions to look up and no
// conditions to take out: those that copy, and the reference, which stays as plain as it can be.
func (u *Unit) plainPasses() []pass { return u.passes()[2:] }

// room is what the functions of a kernel may take. Vectors are aligned to a cache line, so that they lie in one.
var room = storage.Limits{StackBytes: 16 << 10, FrameBytes: 128 << 10, AlignBytes: 64}

// bareRoom is that of programs without an operating system, whose stacks have a few KiB: more lies in the arena, where
// it is counted.
var bareRoom = storage.Limits{StackBytes: 256, FrameBytes: 512, AlignBytes: 64}

// observe, if not nil, sees the program after each step.
var observe func(step string, f *ir.Func)

// lowered is a schedule as the program that is printed, after the passes. Each is told to see.
func lowered(s *schedule.Schedule, passes []pass, see func(step string, f *ir.Func)) (*ir.Func, error) {
	f, err := lower.Schedule(s)
	if err == nil && slices.ContainsFunc(s.Stages, func(g *schedule.Stage) bool { return g.Scope != schedule.ByPlace }) {
		f = withoutScopes(f)
	}
	step := "lower"
	for k := 0; err == nil; k++ {
		if see != nil {
			see(step, f)
		}
		if k == len(passes) {
			break
		}
		step = passes[k].name
		f, err = passes[k].run(f)
	}
	return f, err
}

// withoutScopes is a kernel whose buffers lie where a processor has room for them, whatever memory of a GPU was asked
// for.
func withoutScopes(f *ir.Func) *ir.Func {
	return f.With(ir.Rebind(f.Body, func(a *ir.Alloc, _ ir.Block) *ir.Buffer {
		b := *a.Buffer
		b.Space = ir.Scratch
		return &b
	}))
}

// Dump is a kernel after each step, and its source, for whoever debugs it; without a target (nil), as plain scalar C.
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
