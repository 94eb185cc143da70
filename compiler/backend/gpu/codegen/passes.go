package codegen

import (
	"fmt"
	"time"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/macros"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

var (
	// order lists the passes between lowering and printing.
	order = pass.Ordered("threads", "shuffle", "wide", "pipeline", "begin", "spread", "tensorize", "storage", "products", "sink", "guard",
		"preload", "barrier", "limits")
	// outline lists the passes before proofs, placement and ordering.
	outline = pass.Ordered("threads", "wide")
)

// config describes a GPU to the passes. Its workspace holds the buffers that outlive a launch.
func config(g *target.GPU) *pass.Config {
	return &pass.Config{HasWarps: g.HasWarps(), Room: pass.StorageLimits{AlignBytes: 64},
		CheckLimits: func(f *ir.Func) error { return checkLimits(f, g) }}
}

// Lower lowers a schedule to the printed program, launches on a GPU. The error names the GPU limit that the schedule
// exceeds.
func Lower(s *schedule.Schedule, g *target.GPU) (*ir.Func, error) {
	return order.Lower(s, config(g), nil)
}

// Outline returns the program of a schedule with its launches and wide copies. Cost estimates are based on it.
func Outline(s *schedule.Schedule) (*ir.Func, error) { return outline.Lower(s, nil, nil) }

// Dump returns a kernel as text after each step. The source is the kernel alone, without its prelude. On an error it
// returns the steps before.
func Dump(s *schedule.Schedule, g *target.GPU, without []string) (steps []backend.Step, err error) {
	passes, err := order.Without(without)
	if err != nil {
		return nil, err
	}
	f, err := passes.Lower(s, config(g), func(step string, f *ir.Func, took time.Duration) {
		steps = append(steps, backend.Step{Name: step, Text: f.Text(), Took: took})
	})
	if err != nil {
		return steps, err
	}
	var helpers cprint.Declarations
	source := ""
	for _, k := range Kernels("kernel", f, &helpers, macros.Text) {
		source += fmt.Sprintf("/* %d blocks */\n%s", k.Blocks, k.Text)
	}
	return append(steps, backend.Step{Name: backend.Source, Text: helpers.Text() + source}), nil
}
