package operators

import (
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/model"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// modelTasks returns the tasks of an ONNX file or a built-in model, with factors in the target's storage format.
func modelTasks(name string, storage array.Storage) ([]workload, error) {
	m, err := readModel(name)
	if err != nil {
		return nil, err
	}
	p, err := frontend.Import(m, frontend.Options{Storage: storage})
	if err != nil {
		return nil, err
	}
	var list []workload
	for _, t := range p.Tasks {
		list = append(list, workload{name: t.Name, shape: "", count: t.Count, Workload: t.Workload, flop: t.Flop, numerics: schedule.Default})
	}
	return list, nil
}

func readModel(name string) (*onnx.Model, error) {
	if !strings.HasSuffix(name, ".onnx") {
		return model.Build(name, model.Options{Seed: 1})
	}
	return onnx.ReadFile(name)
}
