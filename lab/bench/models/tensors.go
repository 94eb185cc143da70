package models

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
)

// tensorFile describes a file of a tensor's raw little-endian values.
type tensorFile struct {
	Name  string  `json:"name"`
	DType string  `json:"dtype"`
	Shape []int64 `json:"shape"`
	File  string  `json:"file"`
}

// writeTensors writes each tensor to a file in dir, with a prefix, and lists them sorted by name.
func writeTensors(tensors map[string]*array.Array, dir, prefix string) ([]tensorFile, error) {
	list := []tensorFile{}
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		a := tensors[name]
		file := filepath.Join(dir, fmt.Sprint(prefix, len(list)))
		if err := os.WriteFile(file, a.Data, 0o600); err != nil {
			return nil, err
		}
		list = append(list, tensorFile{Name: name, DType: dtypeNames[a.DType], Shape: a.Shape, File: file})
	}
	return list, nil
}

func readTensors(list []tensorFile) (map[string]*array.Array, error) {
	tensors := map[string]*array.Array{}
	for _, t := range list {
		data, err := os.ReadFile(t.File)
		if err != nil {
			return nil, err
		}
		a := &array.Array{DType: parseDType(t.DType), Shape: t.Shape, Data: data}
		if err := a.Check(); err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		tensors[t.Name] = a
	}
	return tensors, nil
}

// writeSpec writes tensors and a list of them, and returns the list's path.
func writeSpec(tensors map[string]*array.Array, dir string) (string, error) {
	list, err := writeTensors(tensors, dir, "input")
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(list)
	if err != nil {
		return "", err
	}
	spec := filepath.Join(dir, "inputs.json")
	return spec, os.WriteFile(spec, b, 0o600)
}

func readSpec(path string) (map[string]*array.Array, error) {
	list, err := listed(path)
	if err != nil {
		return nil, err
	}
	return readTensors(list)
}

// listed reads the tensors of a list.
func listed(path string) (list []tensorFile, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// dtypeNames maps element types to ONNX Runtime's names.
var dtypeNames = map[array.DType]string{
	array.Float32: "float32", array.Float64: "float64", array.Int8: "int8", array.Int16: "int16", array.Int32: "int32",
	array.Int64: "int64", array.Uint8: "uint8", array.Uint16: "uint16", array.Uint32: "uint32", array.Uint64: "uint64",
	array.Bool: "bool",
}

func parseDType(name string) array.DType {
	for d, n := range dtypeNames {
		if n == name {
			return d
		}
	}
	return array.Invalid
}
