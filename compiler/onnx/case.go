package onnx

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/tilth-dev/tilth/compiler/array"
)

// DataSet is a data set of an ONNX backend test: the model's inputs (without initializers) and expected outputs, in
// the model's order.
type DataSet struct {
	Name            string
	Inputs, Outputs []*array.Array
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
