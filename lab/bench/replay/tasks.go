package replay

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/modelzoo"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/tuner/jobclient"
)

// Task is a workload to record.
type Task struct {
	// Name is the task's name in its model. Model is the built-in model, or empty for a file.
	Name, Model string
	Workload    *expr.Workload
}

// chosen lists tasks of a built-in model.
type chosen struct {
	model string
	tasks []string
}

// standard lists the default tasks: of different kinds of networks, mostly 0.1 to a few milliseconds on a core.
var standard = []chosen{
	{"mobilenet-v2", []string{
		"conv2d+clip 1x28x28x192 k3x3 depthwise -> 192",
		"conv2d+clip 1x112x112x96 k3x3 s2x2 depthwise -> 96",
		"conv2d+add 1x28x28x192 k1x1 -> 32",
		"conv2d+clip 1x14x14x96 k1x1 -> 576",
		"conv2d+clip 1x3x224x224 k3x3 s2x2 -> 32",
	}},
	{"bert-small", []string{
		"matmul+add+add 1x128x512 x 512x512 -> 1x128x512",
		"layernorm 1x128x512 -> 1x128x512",
		"attention+transpose+copy 1x128x8x64 x 1x8x64x128 -> 1x8x128x64",
	}},
	{"resnet-18", []string{
		"conv2d+relu 1x28x28x128 k3x3 -> 128",
		"conv2d+relu 1x56x56x64 k3x3 s2x2 -> 128",
		"conv2d 1x28x28x128 k1x1 s2x2 -> 256",
		"conv2d+add+relu 1x14x14x256 k3x3 -> 256",
		"conv2d+relu 1x56x56x64 k3x3 -> 64",
		"maxpool 1x112x112x64 k3x3 s2x2 -> 64",
		"dense 1x512 -> 1000",
		"conv2d+relu 1x3x224x224 k7x7 s2x2 -> 64",
	}},
	{"resnet-50", []string{
		"conv2d+relu 1x56x56x64 k1x1 -> 64",
		"conv2d+add+relu 1x28x28x128 k1x1 -> 512",
		"conv2d+relu 1x14x14x1024 k1x1 -> 256",
		"conv2d+relu 1x7x7x2048 k1x1 -> 512",
	}},
	{"densenet-121", []string{
		"conv2d 1x14x14x128 k3x3 -> 32",
		"mul+add+relu+conv2d+relu 1x28x28x160 k1x1 -> 128",
		"avgpool+mul+add+relu 1x56x56x128 k2x2 s2x2 -> 128",
	}},
	{"inception-v3", []string{
		"conv2d+relu 1x17x17x128 k1x7 -> 128",
		"conv2d+relu 1x35x35x48 k5x5 -> 64",
		"avgpool 1x35x35x192 k3x3 -> 192",
	}},
	{"lstm", []string{"dense 35x650 -> 2600"}},
}

// Model holds the tasks of a named model.
type Model struct {
	Name  string
	Tasks []program.Task
}

// Join lists the tasks of several models. Each workload appears once, under the first model that has it.
func Join(models ...Model) []Task {
	owner := map[string]string{}
	var parts []jobclient.Model
	for _, m := range models {
		parts = append(parts, jobclient.Model{Tasks: m.Tasks, Weight: 1})
		for _, t := range m.Tasks {
			if d := t.Workload.Digest(); owner[d] == "" {
				owner[d] = m.Name
			}
		}
	}
	var list []Task
	for _, t := range jobclient.Join(parts...) {
		list = append(list, Task{Name: t.Name, Model: owner[t.Workload.Digest()], Workload: t.Workload})
	}
	return list
}

// BuiltIn returns a built-in model with factors in the target's storage format.
func BuiltIn(name string, storage array.Storage) (Model, error) {
	m, err := modelzoo.Build(name, modelzoo.Options{})
	if err != nil {
		return Model{}, err
	}
	p, err := frontend.Import(m, frontend.Options{Storage: storage})
	if err != nil {
		return Model{}, fmt.Errorf("model %s: %w", name, err)
	}
	return Model{name, p.Tasks}, nil
}

// Standard returns the default tasks for a target's storage format.
func Standard(storage array.Storage) ([]Task, error) {
	var list []Task
	for _, c := range standard {
		m, err := BuiltIn(c.model, storage)
		if err != nil {
			return nil, err
		}
		tasks := Join(m)
		for _, name := range c.tasks {
			k := slices.IndexFunc(tasks, func(t Task) bool { return t.Name == name })
			if k < 0 {
				return nil, fmt.Errorf("model %s has no task %q", c.model, name)
			}
			list = append(list, tasks[k])
		}
	}
	return list, nil
}

// allModels selects every built-in model.
const allModels = "all"

// Choice selects tasks to record.
type Choice struct {
	// Tasks is a comma-separated list of numbers, ranges and parts of names. Empty means all.
	Tasks string
	// Every selects every Nth of these tasks.
	Every int
	// MaxGFLOP skips larger tasks; 0 means no limit.
	MaxGFLOP float64
}

// Load returns the selected tasks of models, or of the standard ones if none is named, for a target that stores
// factors in storage. A model is an ONNX file, the name of a built-in model, or "all".
func (c Choice) Load(models []string, storage array.Storage) ([]Task, error) {
	if c.Every < 1 || c.MaxGFLOP < 0 {
		return nil, fmt.Errorf("--every %d, --most-gflop %g: want positive numbers", c.Every, c.MaxGFLOP)
	}
	all, err := load(models, storage)
	if err != nil {
		return nil, err
	}
	named := make([]jobclient.Task, len(all))
	for k, t := range all {
		named[k] = jobclient.Task{Index: k, Name: t.Name, Task: program.Task{Workload: t.Workload}}
	}
	if named, err = jobclient.Select(named, c.Tasks); err != nil {
		return nil, err
	}
	var list []Task
	for k, t := range named {
		if k%c.Every == 0 && (c.MaxGFLOP == 0 || t.Workload.Flop() <= c.MaxGFLOP*1e9) {
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
		names = append(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == allModels }), modelzoo.Names()...)
	}
	var models []Model
	for _, name := range names {
		read := fromFile
		if slices.Contains(modelzoo.Names(), name) {
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
