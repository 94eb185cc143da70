package modeltest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
)

var record = flag.String("record", "", "directory with node_modules/onnxruntime-node: add missing results to testdata")

func TestCasesHaveResults(t *testing.T) {
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		cases, err := read(data)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if *record != "" {
			recordMissing(t, file, cases)
		}
		for _, c := range cases {
			if len(c.Outputs) == 0 {
				t.Errorf("%s: %s: no results are recorded: run this test with -record", file, c.Name)
			}
		}
	}
}

var runtimeTypes = map[array.DType]string{
	array.Float32: "float32", array.Float64: "float64", array.Float16: "float16", array.Int8: "int8", array.Int16: "int16", array.Int32: "int32",
	array.Int64: "int64", array.Uint8: "uint8", array.Uint16: "uint16", array.Uint32: "uint32", array.Uint64: "uint64", array.Bool: "bool",
}

// recordMissing runs the cases without results in ONNX Runtime and updates the file.
func recordMissing(t *testing.T, file string, cases []*Case) {
	t.Helper()
	dir := t.TempDir()
	for k, c := range cases {
		if len(c.Outputs) == 0 {
			writeForRuntime(t, filepath.Join(dir, fmt.Sprint(k)), c)
		}
	}
	cmd := exec.Command("node", "testdata/record.js", *record, dir)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("node testdata/record.js: %v", err)
	}
	var text bytes.Buffer
	for k, c := range cases {
		if len(c.Outputs) == 0 {
			readFromRuntime(t, filepath.Join(dir, fmt.Sprintf("%d.out.json", k)), c)
		}
		line, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(line, '\n'))
	}
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func writeForRuntime(t *testing.T, stem string, c *Case) {
	t.Helper()
	m, inputs, err := c.Model()
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	type spec struct {
		Name  string  `json:"name"`
		DType string  `json:"dtype"`
		Shape []int64 `json:"shape"`
	}
	specs := []spec{}
	files := map[string][]byte{".onnx": m.Encode()}
	for name, a := range inputs {
		specs = append(specs, spec{name, runtimeTypes[a.DType], a.Shape})
		files["."+name+".bin"] = a.Data
	}
	if files[".json"], err = json.Marshal(specs); err != nil {
		t.Fatal(err)
	}
	for suffix, data := range files {
		if err := os.WriteFile(stem+suffix, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func readFromRuntime(t *testing.T, file string, c *Case) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var results []struct {
		DType  string  `json:"dtype"`
		Shape  []int64 `json:"shape"`
		Values []byte  `json:"values"`
	}
	if err := json.Unmarshal(data, &results); err != nil {
		t.Errorf("%s: ONNX Runtime says %s", c.Name, data)
		return
	}
	for _, r := range results {
		for d, name := range runtimeTypes {
			if name == r.DType {
				c.Outputs = append(c.Outputs, arrayOf(&array.Array{DType: d, Shape: r.Shape, Data: r.Values}))
			}
		}
	}
}

// MarshalJSON writes values that JSON cannot represent as strings.
func (n number) MarshalJSON() ([]byte, error) {
	if v, err := strconv.ParseFloat(string(n), 64); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
		return []byte(n), nil
	}
	return json.Marshal(string(n))
}

func arrayOf(a *array.Array) *Array {
	r := &Array{Type: a.DType.String(), Shape: a.Shape, Values: []number{}}
	for i := range a.Len() {
		text := strconv.FormatInt(a.Int(i), 10)
		if a.DType.IsFloat() {
			text = strconv.FormatFloat(a.Float(i), 'g', 7, 64)
		}
		r.Values = append(r.Values, number(text))
	}
	return r
}
