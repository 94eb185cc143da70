package onnx

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Case is an ONNX backend test: a model and data sets of inputs with the expected outputs.
type Case struct {
	Model *Model
	Sets  []DataSet
}

// DataSet holds the model's inputs (without initializers) and outputs, in the model's order.
type DataSet struct {
	Name            string
	Inputs, Outputs []*array.Array
}

// ReadCase reads a directory with model.onnx and test_data_set_*/{input,output}_*.pb.
func ReadCase(dir string) (*Case, error) {
	m, err := ReadFile(filepath.Join(dir, "model.onnx"))
	if err != nil {
		return nil, err
	}
	if err := m.onlyTensors(); err != nil {
		return nil, fmt.Errorf("read case %s: %w", dir, err)
	}
	sets, err := ReadDataSets(dir)
	return &Case{Model: m, Sets: sets}, err
}

// ReadDataSets reads the test_data_set_*/{input,output}_*.pb of a directory. It returns an error if none exist.
func ReadDataSets(dir string) ([]DataSet, error) {
	folders, err := filepath.Glob(filepath.Join(dir, "test_data_set_*"))
	if err != nil {
		return nil, fmt.Errorf("read case %s: %w", dir, err)
	}
	if len(folders) == 0 {
		return nil, fmt.Errorf("read case %s: no test_data_set_* folder", dir)
	}
	var sets []DataSet
	for _, folder := range folders {
		s := DataSet{Name: filepath.Base(folder)}
		if s.Inputs, err = readTensors(folder, "input"); err != nil {
			return nil, err
		}
		if s.Outputs, err = readTensors(folder, "output"); err != nil {
			return nil, err
		}
		sets = append(sets, s)
	}
	return sets, nil
}

// onlyTensors rejects models with other inputs or outputs, whose values are stored as other messages.
func (m *Model) onlyTensors() error {
	for _, v := range m.Graph.Inputs {
		if v.Kind != "" {
			return fmt.Errorf("input %q is a %s: only tensors are supported", v.Name, v.Kind)
		}
	}
	for _, v := range m.Graph.Outputs {
		if v.Kind != "" {
			return fmt.Errorf("output %q is a %s: only tensors are supported", v.Name, v.Kind)
		}
	}
	return nil
}

// readTensors reads KIND_0.pb, KIND_1.pb, ... up to the first missing file.
func readTensors(dir, kind string) ([]*array.Array, error) {
	var arrays []*array.Array
	for k := 0; ; k++ {
		path := filepath.Join(dir, fmt.Sprintf("%s_%d.pb", kind, k))
		data, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return arrays, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read case: %w", err)
		}
		t, err := new(reader).tensor(data)
		if err != nil {
			return nil, fmt.Errorf("read case: %s: %w", path, err)
		}
		arrays = append(arrays, t.Value)
	}
}
