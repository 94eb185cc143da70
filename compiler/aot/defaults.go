package aot

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Defaults returns the default schedules of tasks on a target, within a level of numerics.
func Defaults(t *target.Target, numerics schedule.Numerics) func(tasks []program.Task) ([]Choice, error) {
	return func(tasks []program.Task) ([]Choice, error) {
		choices := make([]Choice, len(tasks))
		for k, task := range tasks {
			applied, err := registry.Default(task.Workload, t, numerics)
			if err != nil {
				return nil, fmt.Errorf("default schedule of %s: %w", task.Name, err)
			}
			choices[k] = Choice{Trace: applied.Trace(), Origin: "default"}
		}
		return choices, nil
	}
}
