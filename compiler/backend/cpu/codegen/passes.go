package codegen

import (
	"time"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

var (
	// order lists the passes between lowering and printing.
	order = pass.Ordered("lookup", "quotients", "partition", "borders", "scopes", "unroll", "padding", "fold", "tiles", "promote", "storage", "outline", "epilogues",
		"transpose", "dot", "squares", "across", "lanewise", "stream", "cse", "prefetch", "separate")
	// plain leaves out the passes before scopes. Programs that copy have neither functions to look up nor
	// conditions to split on, and the reference stays as plain as possible.
	plain = order[4:]
)

// room limits the stack of a kernel's functions. Vectors are aligned to a cache line, so that none crosses one.
var room = pass.StorageLimits{StackBytes: 16 << 10, FrameBytes: 128 << 10, AlignBytes: 64}

// bareRoom is the limit for programs without an operating system, whose stacks have a few KiB. Larger buffers go into
// the arena, which counts them.
var bareRoom = pass.StorageLimits{StackBytes: 256, FrameBytes: 512, AlignBytes: 64}

// Dump returns a kernel after each step, and its source, for debugging. Without a target it prints scalar C. On an
// error it returns the steps before.
func Dump(s *schedule.Schedule, t *target.Target, without []string) (steps []backend.Step, err error) {
	u := NewUnit(t)
	if u.order, err = u.order.Without(without); err != nil {
		return nil, err
	}
	u.observe = func(step string, f *ir.Func, took time.Duration) {
		steps = append(steps, backend.Step{Name: step, Text: f.Text(), Took: took})
	}
	if _, err := u.AddWithPacks("kernel", schedule.Digest(s.Trace()), s); err != nil {
		return steps, err
	}
	return append(steps, backend.Step{Name: backend.Source, Text: u.Source()}), nil
}
