package record

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/model"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/tuner/job"
)

// allModels selects every built-in model.
const allModels = "all"

// Choice selects tasks to record.
type Choice struct {
	// Tasks is a comma-separated list of numbers, ranges and parts of names. Empty means all.
	Tasks string
	// Every selects every Nth of these tasks.
	Every int
	// MostGFLOP skips larger tasks; 0 means no limit.
	MostGFLOP float64
}

// Load returns the selected tasks of models, or of the standard ones if none is named, for a target that stores
// factors in storage. A model is an ONNX file, the name of a built-in model, or "all".
func (c Choice) Load(models []string, storage array.Storage) ([]Task, error) {
	if c.Every < 1 || c.MostGFLOP < 0 {
		return nil, fmt.Errorf("--every %d, --most-gflop %g: want positive numbers", c.Every, c.MostGFLOP)
	}
	all, err := load(models, storage)
	if err != nil {
		return nil, err
	}
	named := make([]job.Task, len(all))
	for k, t := range all {
		named[k] = job.Task{Index: k, Name: t.Name, Task: program.Task{Workload: t.Workload}}
	}
	if named, err = job.Select(named, c.Tasks); err != nil {
		return nil, err
	}
	var list []Task
	for k, t := range named {
		if k%c.Every == 0 && (c.MostGFLOP == 0 || t.Workload.Flop() <= c.MostGFLOP*1e9) {
			list = append(list, all[t.Index])
		}
	}
	return list, nil
}

func load(names []string, storage array.Storage) ([]Task, error) {
	if len(names) == 0 {
		return Standard(storage)
	}
	if slices.Contains(names, allModels) {
		names = append(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == allModels }), model.Names()...)
	}
	var models []Model
	for _, name := range names {
		read := fromFile
		if slices.Contains(model.Names(), name) {
			read = BuiltIn
		}
		m, err := read(name, storage)
		if err != nil {
			return nil, err
		}
		models = append(models, m)
	}
	return Join(models...), nil
}

func fromFile(path string, storage array.Storage) (Model, error) {
	m, err := onnx.ReadFile(path)
	if err != nil {
		return Model{}, err
	}
	p, err := frontend.Import(m, frontend.Options{Storage: storage})
	if err != nil {
		return Model{}, fmt.Errorf("%s: %w", path, err)
	}
	return Model{strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".onnx"), p.Tasks}, nil
}
