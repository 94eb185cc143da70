package main

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/model"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/lab/bench/replay/record"
	"github.com/tilth-dev/tilth/tuning/job"
)

// allModels stands for every built-in model.
const allModels = "all"

// recordChoice says which tasks to record.
type recordChoice struct {
	model     modelFlags
	tasks     string
	every     int
	mostGFLOP float64
}

func (f *recordChoice) add(c *cobra.Command) {
	f.model.add(c)
	c.ValidArgs = append(model.Names(), allModels)
	c.Flags().StringVar(&f.tasks, "tasks", "", "tasks to record: `numbers`, ranges and parts of names (default all)")
	c.Flags().IntVar(&f.every, "every", 1, "record only every Nth of these tasks")
	c.Flags().Float64Var(&f.mostGFLOP, "most-gflop", 0, "skip tasks with more operations (default none)")
}

// load is the tasks of models, or the standard ones, that are selected, as a target with such a storage computes them.
// A model is a file, the name of a built-in one, or all of these.
func (f *recordChoice) load(args []string, storage array.Storage) ([]record.Task, error) {
	if f.every < 1 || f.mostGFLOP < 0 {
		return nil, usagef("--every %d, --most-gflop %g: want positive numbers", f.every, f.mostGFLOP)
	}
	all, err := f.known(args, storage)
	if err != nil {
		return nil, err
	}
	named := make([]job.Task, len(all))
	for k, t := range all {
		named[k] = job.Task{Index: k, Name: t.Name, Task: program.Task{Workload: t.Workload}}
	}
	if named, err = job.Select(named, f.tasks); err != nil {
		return nil, err
	}
	var list []record.Task
	for k, t := range named {
		if k%f.every == 0 && (f.mostGFLOP == 0 || t.Workload.Flop() <= f.mostGFLOP*1e9) {
			list = append(list, all[t.Index])
		}
	}
	return list, nil
}

func (f *recordChoice) known(args []string, storage array.Storage) ([]record.Task, error) {
	if len(args) == 0 {
		return record.Standard(storage)
	}
	if slices.Contains(args, allModels) {
		args = append(slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == allModels }), model.Names()...)
	}
	var files, names []string
	for _, a := range args {
		if slices.Contains(model.Names(), a) {
			names = append(names, a)
		} else {
			files = append(files, a)
		}
	}
	var models []record.Model
	err := f.model.loadAll(files, storage, func(path string, p *program.Program) error {
		models = append(models, record.Model{Name: modelName(path), Tasks: p.Tasks})
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		m, err := record.BuiltIn(name, storage)
		if err != nil {
			return nil, err
		}
		models = append(models, m)
	}
	return record.Join(models...), nil
}
