package conformance

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// job is an imported data set of a case.
type job struct {
	*bound
	set string
	// outputs lists the names of the expected outputs, in the model's order.
	outputs []string
	want    map[string]*array.Array
}

// refusal is the error for a model that the compiler rejects.
type refusal struct{ cause error }

func (e *refusal) Error() string { return e.cause.Error() }
func (e *refusal) Unwrap() error { return e.cause }

// refused returns the result of a case that cannot be run.
func refused(name string, err error) *Result {
	r := failed(name, err)
	if errors.Is(err, onnx.ErrUnsupported) || errors.As(err, new(*refusal)) {
		r.Status = Unsupported
	}
	return &r
}

// prepare reads and imports a case with the given storage. It returns an error if the case cannot be run.
func prepare(dir string, storage array.Storage) (jobs []job, err error) {
	defer schedule.RecoverAs(&err)
	m, err := onnx.ReadFile(filepath.Join(dir, modelFile))
	if err != nil {
		return nil, err
	}
	if err := onlyTensors(m.Graph); err != nil {
		return nil, &refusal{err}
	}
	sets, err := onnx.ReadDataSets(dir)
	if err != nil {
		return nil, err
	}
	for _, set := range sets {
		j, err := prepareSet(m, set, storage)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

func prepareSet(m *onnx.Model, set onnx.DataSet, storage array.Storage) (job, error) {
	j := job{set: set.Name, want: map[string]*array.Array{}}
	if len(set.Outputs) == 0 || len(set.Outputs) > len(m.Graph.Outputs) {
		return j, fmt.Errorf("%s has %d outputs, the model %d", set.Name, len(set.Outputs), len(m.Graph.Outputs))
	}
	for k, a := range set.Outputs {
		info := m.Graph.Outputs[k]
		j.outputs = append(j.outputs, info.Name)
		j.want[info.Name] = retype(a, info.DType)
	}
	values, err := feeds(m, set)
	if err != nil {
		return j, err
	}
	if j.bound, err = importSet(m, values, storage); err != nil && !errors.Is(err, schedule.ErrInternal) {
		return j, &refusal{err}
	}
	return j, err
}

// onlyTensors rejects models with other inputs or outputs.
func onlyTensors(g *onnx.Graph) error {
	for _, list := range []struct {
		kind  string
		infos []*onnx.ValueInfo
	}{{"input", g.Inputs}, {"output", g.Outputs}} {
		for _, info := range list.infos {
			if info.Kind != "" {
				return fmt.Errorf("%s %q is of type %s: only tensors are supported", list.kind, info.Name, info.Kind)
			}
		}
	}
	return nil
}
