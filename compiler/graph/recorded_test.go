package graph

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// The files testdata/recorded/*.jsonl hold applications of operators with the results that ONNX Runtime gives, one a line.
// After adding lines without results, record them:
//
//	npm install --prefix /tmp/ort onnxruntime-node --ignore-scripts
//	go test ./compiler/graph -run TestRecorded -record /tmp/ort
var record = flag.String("record", "", "directory with node_modules/onnxruntime-node: add missing results to testdata/recorded")

// recordedCase is a line of a file.
type recordedCase struct {
	Name    string                     `json:"name"`
	Op      string                     `json:"op"`
	Opset   int64                      `json:"opset"`
	Attrs   map[string]json.RawMessage `json:"attrs,omitempty"`
	Inputs  []*recordedArray           `json:"in"`
	Outputs []*recordedArray           `json:"out,omitempty"`
	// Results is the number of the node's results, 1 when it is not given.
	Results int `json:"results,omitempty"`
}

// recordedArray is a tensor. Without values it has made-up ones. A constant is an initializer of the model.
type recordedArray struct {
	Type   string   `json:"type"`
	Shape  []int64  `json:"shape"`
	Values []number `json:"values,omitempty"`
	Const  bool     `json:"const,omitempty"`
}

// number is written like JSON's, or as "NaN", "+Inf", "-Inf".
type number string

func (n *number) UnmarshalJSON(data []byte) error {
	*n = number(strings.Trim(string(data), `"`))
	return nil
}

func (n number) MarshalJSON() ([]byte, error) {
	if v, err := strconv.ParseFloat(string(n), 64); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
		return []byte(n), nil
	}
	return json.Marshal(string(n))
}

func (r *recordedArray) array() (*array.Array, error) {
	d := array.ParseDType(r.Type)
	if d == array.Invalid || r.Values != nil && int64(len(r.Values)) != array.Elements(r.Shape) {
		return nil, fmt.Errorf("%d values for %s%v", len(r.Values), r.Type, r.Shape)
	}
	a := array.New(d, r.Shape...)
	for i := range a.Len() {
		switch {
		case r.Values != nil && d.IsFloat():
			v, err := strconv.ParseFloat(string(r.Values[i]), 64)
			if err != nil {
				return nil, err
			}
			a.SetFloat(i, v)
		case r.Values != nil:
			v, err := strconv.ParseInt(string(r.Values[i]), 10, 64)
			if err != nil {
				return nil, err
			}
			a.SetInt(i, v)
		case d.IsFloat():
			a.SetFloat(i, math.Round(1000*math.Sin(float64(i*i%1009)))/1000)
		default:
			a.SetInt(i, i*i%11)
		}
	}
	return a, nil
}

func recordedOf(a *array.Array) *recordedArray {
	r := &recordedArray{Type: a.DType.String(), Shape: a.Shape, Values: []number{}}
	for i := range a.Len() {
		text := strconv.FormatInt(a.Int(i), 10)
		if a.DType.IsFloat() {
			text = strconv.FormatFloat(a.Float(i), 'g', 7, 64)
		}
		r.Values = append(r.Values, number(text))
	}
	return r
}

// model is the case as a model of one node, with the inputs that it takes.
func (c *recordedCase) model() (*onnx.Model, map[string]*array.Array, error) {
	g := &onnx.Graph{Name: c.Name}
	m := &onnx.Model{IRVersion: 8, Opsets: []onnx.Opset{{Version: c.Opset}}, Graph: g}
	n := &onnx.Node{Name: "node", Op: c.Op, Attributes: recordedAttributes(c.Attrs)}
	inputs := map[string]*array.Array{}
	for k, in := range c.Inputs {
		if in == nil {
			n.Inputs = append(n.Inputs, "")
			continue
		}
		a, err := in.array()
		if err != nil {
			return nil, nil, fmt.Errorf("input %d: %w", k, err)
		}
		name := fmt.Sprintf("x%d", k)
		n.Inputs = append(n.Inputs, name)
		if in.Const {
			g.Initializers = append(g.Initializers, &onnx.Tensor{Name: name, Value: a})
			continue
		}
		v := info(name, a.Shape)
		v.DType = a.DType
		g.Inputs = append(g.Inputs, v)
		inputs[name] = a
	}
	for k := range max(1, c.Results) {
		name := fmt.Sprintf("y%d", k)
		n.Outputs = append(n.Outputs, name)
		g.Outputs = append(g.Outputs, &onnx.ValueInfo{Name: name})
	}
	g.Nodes = []*onnx.Node{n}
	return m, inputs, nil
}

// recordedAttributes reads attributes; numbers with a point are floating point.
func recordedAttributes(raw map[string]json.RawMessage) []*onnx.Attribute {
	var list []*onnx.Attribute
	for name, data := range raw {
		a := &onnx.Attribute{Name: name}
		text := string(data)
		isFloat := strings.ContainsAny(text, ".")
		switch {
		case text[0] == '"':
			a.Type = onnx.AttrString
			_ = json.Unmarshal(data, &a.String)
		case text[0] == '[' && isFloat:
			a.Type = onnx.AttrFloats
			_ = json.Unmarshal(data, &a.Floats)
		case text[0] == '[':
			a.Type = onnx.AttrInts
			_ = json.Unmarshal(data, &a.Ints)
		case isFloat:
			a.Type = onnx.AttrFloat
			_ = json.Unmarshal(data, &a.Float)
		default:
			a.Type = onnx.AttrInt
			_ = json.Unmarshal(data, &a.Int)
		}
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b *onnx.Attribute) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func TestRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/recorded/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded cases: %v", err)
	}
	for _, file := range files {
		cases := readRecorded(t, file)
		if *record != "" {
			recordMissing(t, file, cases)
		}
		for _, c := range cases {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl")+"/"+c.Name, func(t *testing.T) { checkRecorded(t, c) })
		}
	}
}

func readRecorded(t *testing.T, file string) []*recordedCase {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var cases []*recordedCase
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	for lines.Scan() {
		c := &recordedCase{}
		if err := json.Unmarshal(lines.Bytes(), c); err != nil {
			t.Fatalf("%s: %v in %.200s", file, err, lines.Text())
		}
		cases = append(cases, c)
	}
	return cases
}

func checkRecorded(t *testing.T, c *recordedCase) {
	m, inputs, err := c.model()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Import(m, Options{})
	if err != nil {
		t.Fatal(err)
	}
	outs, err := p.Evaluate(inputs)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Outputs) == 0 {
		t.Fatal("no results are recorded: run the test with -record")
	}
	for k, out := range c.Outputs {
		want, err := out.array()
		if err != nil {
			t.Fatal(err)
		}
		if err := compare(outs[fmt.Sprintf("y%d", k)], want); err != nil {
			t.Errorf("result %d: %v", k, err)
		}
	}
}

var runtimeTypes = map[array.DType]string{
	array.Float32: "float32", array.Float64: "float64", array.Float16: "float16", array.Int8: "int8", array.Int16: "int16", array.Int32: "int32",
	array.Int64: "int64", array.Uint8: "uint8", array.Uint16: "uint16", array.Uint32: "uint32", array.Uint64: "uint64", array.Bool: "bool",
}

// recordMissing runs the cases without results in ONNX Runtime and writes the file with them.
func recordMissing(t *testing.T, file string, cases []*recordedCase) {
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

func writeForRuntime(t *testing.T, stem string, c *recordedCase) {
	t.Helper()
	m, inputs, err := c.model()
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

func readFromRuntime(t *testing.T, file string, c *recordedCase) {
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
				c.Outputs = append(c.Outputs, recordedOf(&array.Array{DType: d, Shape: r.Shape, Data: r.Values}))
			}
		}
	}
}
