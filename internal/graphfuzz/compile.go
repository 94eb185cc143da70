package graphfuzz

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// Compiler compiles and runs programs.
type Compiler struct {
	Target    *target.Target
	Toolchain *toolchain.Toolchain
	// Parallel is how many C compilers run at once.
	Parallel int
}

// Run compiles programs into one package in the folder dir, each task with a schedule drawn by the seed, and returns what each
// computes on its inputs.
func (c *Compiler) Run(ctx context.Context, programs []*graph.Program, inputs []map[string]*array.Array, seed uint64, dir string) ([]map[string]*array.Array, error) {
	joined := graph.Join("graphs", programs)
	choices, err := c.schedules(joined, rand.New(rand.NewPCG(seed, 1)))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "graphs.tar")
	options := aot.Options{Target: c.Target, Toolchain: c.Toolchain, Choices: choices, Parallel: c.Parallel, Output: path}
	if _, err := aot.Compile(ctx, joined, options); err != nil {
		return nil, err
	}
	model, err := aot.Load(path)
	if err != nil {
		return nil, err
	}
	defer model.Close()
	feeds := map[string]*array.Array{}
	for k, values := range inputs {
		for name, a := range values {
			feeds[graph.JoinedName(k, name)] = a
		}
	}
	outputs, err := model.Run(feeds)
	if err != nil {
		return nil, err
	}
	results := make([]map[string]*array.Array, len(programs))
	for k, p := range programs {
		results[k] = map[string]*array.Array{}
		for _, v := range p.Outputs {
			name := p.Values[v].Name
			results[k][name] = outputs[graph.JoinedName(k, name)]
		}
	}
	return results, nil
}

// schedules draws a legal point of each task's space, or takes the default one where there is none.
func (c *Compiler) schedules(p *graph.Program, rng *rand.Rand) ([]aot.Choice, error) {
	choices := make([]aot.Choice, len(p.Tasks))
	for k, task := range p.Tasks {
		s := space.New(task.Workload, c.Target, schedule.Default)
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
