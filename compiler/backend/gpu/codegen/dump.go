package codegen

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/macros"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

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
