package graphfuzz

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// Compiler compiles and runs programs.
type Compiler struct {
	Target    *target.Target
	Toolchain *toolchain.Toolchain
	// Parallel is the number of concurrent C compilers.
	Parallel int
	// Objects, if not nil, caches object files between builds.
	Objects *toolchain.Objects
	// Numerics restricts the schedules.
	Numerics schedule.Numerics
	// Emulator is the command that runs programs of the target; nil if this machine does.
	Emulator []string
}

// Run compiles programs with random schedules and returns the outputs for their inputs.
func (c *Compiler) Run(ctx context.Context, programs []*program.Program, inputs []map[string]*array.Array, seed uint64) ([]map[string]*array.Array, error) {
	options := aot.Options{Target: c.Target, Toolchain: c.Toolchain, Parallel: c.Parallel, Objects: c.Objects, Emulator: c.Emulator}
	return aot.RunOnce(ctx, programs, inputs, options, func(tasks []program.Task) ([]aot.Choice, error) {
		return c.schedules(tasks, rand.New(rand.NewPCG(seed, 1)))
	})
}

// RunAll is Run with several consecutive runs.
func (c *Compiler) RunAll(ctx context.Context, programs []*program.Program, runs [][]map[string]*array.Array, seed uint64) ([][]map[string]*array.Array, error) {
	options := aot.Options{Target: c.Target, Toolchain: c.Toolchain, Parallel: c.Parallel, Objects: c.Objects, Emulator: c.Emulator}
	return aot.RunSeveral(ctx, programs, runs, options, func(tasks []program.Task) ([]aot.Choice, error) {
		return c.schedules(tasks, rand.New(rand.NewPCG(seed, 1)))
	})
}

// schedules draws a legal point of each task's space, or falls back to the default.
func (c *Compiler) schedules(tasks []program.Task, rng *rand.Rand) ([]aot.Choice, error) {
	choices := make([]aot.Choice, len(tasks))
	for k, task := range tasks {
		s, err := registry.Space(task.Workload, c.Target, c.Numerics)
		if err != nil {
			return nil, err
		}
		point, ok := s.Random(rng)
		if !ok {
			point = s.Default()
		}
		applied, err := s.Apply(point)
		if err != nil {
			return nil, fmt.Errorf("point %s of %s: %w", s.Format(point), task.Name, err)
		}
		choices[k] = aot.Choice{Trace: applied.Trace(), Origin: "random"}
	}
	return choices, nil
}
