package modeltest

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// The files hold a case a line. After adding lines without results, record them:
//
//	npm install --prefix /tmp/ort onnxruntime-node --ignore-scripts
//	go test ./lab/testkit/modeltest -record /tmp/ort
//
//go:embed testdata/*.jsonl
var files embed.FS

// Case is one application of an operator.
type Case struct {
	Name string `json:"name"`
	Op   string `json:"op"`
	// Domain is the operator's domain, or empty for ONNX's own.
	Domain  string                     `json:"domain,omitempty"`
	Opset   int64                      `json:"opset"`
	Attrs   map[string]json.RawMessage `json:"attrs,omitempty"`
	Inputs  []*Array                   `json:"in"`
	Outputs []*Array                   `json:"out,omitempty"`
	// Results is the number of results; the default is 1.
	Results int `json:"results,omitempty"`
}

// RecordedCases returns the cases of all files, with the file in each name.
func RecordedCases() ([]*Case, error) {
	var all []*Case
	entries, err := files.ReadDir("testdata")
	for _, e := range entries {
		data, err := files.ReadFile(path.Join("testdata", e.Name()))
		if err != nil {
			return nil, err
		}
		cases, err := read(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		for _, c := range cases {
			c.Name = strings.TrimSuffix(e.Name(), ".jsonl") + "/" + c.Name
		}
		all = append(all, cases...)
	}
	return all, err
}

func read(data []byte) ([]*Case, error) {
	var cases []*Case
	for line := range bytes.Lines(data) {
		c := &Case{}
		if err := json.Unmarshal(line, c); err != nil {
			return nil, fmt.Errorf("%w in %.200s", err, line)
		}
		cases = append(cases, c)
	}
	return cases, nil
}

// Model returns a model of one node with results y0, y1, ..., and its inputs.
func (c *Case) Model() (*onnx.Model, map[string]*array.Array, error) {
	g := &onnx.Graph{Name: c.Name}
	m := &onnx.Model{IRVersion: 8, Opsets: []onnx.Opset{{Version: c.Opset}}, Graph: g}
	if c.Domain != "" {
		m.Opsets = append(m.Opsets, onnx.Opset{Domain: c.Domain, Version: 1})
	}
	n := &onnx.Node{Name: "node", Op: c.Op, Domain: c.Domain, Attributes: attributes(c.Attrs)}
	inputs := map[string]*array.Array{}
	for k, in := range c.Inputs {
		if in == nil {
			n.Inputs = append(n.Inputs, "")
			continue
		}
		a, err := in.Array()
		if err != nil {
			return nil, nil, fmt.Errorf("input %d: %w", k, err)
		}
		name := fmt.Sprintf("x%d", k)
		n.Inputs = append(n.Inputs, name)
		if in.Const {
			g.Initializers = append(g.Initializers, &onnx.Tensor{Name: name, Value: a})
			continue
		}
		v := &onnx.ValueInfo{Name: name, DType: a.DType, HasShape: true}
		for _, e := range a.Shape {
			v.Shape = append(v.Shape, onnx.Dim{Value: e})
		}
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

// attributes parses attributes. Numbers with a decimal point are floats.
func attributes(raw map[string]json.RawMessage) []*onnx.Attribute {
	var list []*onnx.Attribute
	for name, data := range raw {
		a := &onnx.Attribute{Name: name}
		text := string(data)
		isFloat := strings.ContainsAny(text, ".")
		switch {
		case text[0] == '"':
			a.Type = onnx.AttrString
			_ = json.Unmarshal(data, &a.String)
		case strings.HasPrefix(text, `["`):
			a.Type = onnx.AttrStrings
			_ = json.Unmarshal(data, &a.Strings)
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
