package codegen

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/macros"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// passes returns the steps between lowering and printing, in order.
func passes(g *target.GPU) []pass.Step {
	combine := pass.Shuffle
	if !g.HasWarps() {
		combine = pass.ShufflePlain
	}
	return []pass.Step{
		{Name: "threads", Run: pass.Threads},
		pass.Total("shuffle", combine),
		pass.Total("wide", pass.Wide),
		pass.Total("pipeline", pass.Pipeline),
		pass.Total("begin", pass.PipelineBegin),
		{Name: "spread", Run: pass.Spread},
		pass.Total("tensorize", pass.Tensorize),
		pass.Total("storage", func(f *ir.Func) *ir.Func { return pass.Storage(f, workspace) }),
		pass.Total("products", pass.Products),
		pass.Total("sink", pass.Sink),
		pass.Total("guard", pass.Guard),
		pass.Total("preload", pass.Preload),
		pass.Total("barrier", pass.Barrier),
		{Name: "limits", Run: func(f *ir.Func) (*ir.Func, error) { return f, checkLimits(f, g) }},
	}
}

// workspace holds the buffers that outlive a launch.
var workspace = pass.StorageLimits{AlignBytes: 64}

// Lower lowers a schedule to the printed program, launches on a GPU. It calls see, if not nil, after each step. The
// error names the GPU limit that the schedule exceeds.
func Lower(s *schedule.Schedule, g *target.GPU, see func(step string, f *ir.Func)) (*ir.Func, error) {
	f, err := lower.Schedule(s)
	if err != nil {
		return nil, err
	}
	return pass.Apply(f, passes(g), see)
}

// Outline returns the program of a schedule with its launches and wide copies, before proofs, placement and ordering.
// Cost estimates are based on it.
func Outline(s *schedule.Schedule) (*ir.Func, error) {
	f, err := lower.Schedule(s)
	if err != nil {
		return nil, err
	}
	if f, err = pass.Threads(f); err != nil {
		return nil, err
	}
	return pass.Wide(f), nil
}

// Dump returns a kernel as text after each step. The source is the kernel alone, without its prelude.
func Dump(s *schedule.Schedule, g *target.GPU) (steps []backend.Step, err error) {
	f, err := Lower(s, g, func(step string, f *ir.Func) {
		steps = append(steps, backend.Step{Name: step, Text: f.Text()})
	})
	if err != nil {
		return nil, err
	}
	var helpers cprint.Declarations
	source := ""
	for _, k := range Kernels("kernel", f, &helpers, macros.Text) {
		source += fmt.Sprintf("/* %d blocks */\n%s", k.Blocks, k.Text)
	}
	return append(steps, backend.Step{Name: backend.Source, Text: helpers.Text() + source}), nil
}
