package modeltest

import (
	"math"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// Model is a small model under construction.
type Model struct{ *onnx.Model }

// New returns a model without nodes, of operator set 13.
func New() Model {
	return Model{&onnx.Model{Opsets: []onnx.Opset{{Version: 13}}, Graph: &onnx.Graph{Name: "test"}}}
}

// Input adds an input of type f32.
func (s Model) Input(name string, shape ...int64) Model {
	s.Graph.Inputs = append(s.Graph.Inputs, Info(name, shape))
	return s
}

// Info declares a value of type f32.
func Info(name string, shape []int64) *onnx.ValueInfo {
	v := &onnx.ValueInfo{Name: name, DType: array.Float32, HasShape: true}
	for _, e := range shape {
		v.Shape = append(v.Shape, onnx.Dim{Value: e})
	}
	return v
}

// Constant adds a constant of type f32 with made-up elements between 0.5 and 1.5.
func (s Model) Constant(name string, shape ...int64) Model {
	return s.Known(name, Wave(1, 0.5, shape...))
}

// Known adds a constant with the given value.
func (s Model) Known(name string, a *array.Array) Model {
	s.Graph.Initializers = append(s.Graph.Initializers, &onnx.Tensor{Name: name, Value: a})
	return s
}

// Node adds a node in the form "result ... = Op operand operand ...". "_" omits an operand. The node's name is
// make_result.
func (s Model) Node(text string, attributes ...*onnx.Attribute) Model {
	fields := strings.Fields(text)
	equals := slices.Index(fields, "=")
	inputs := append([]string{}, fields[equals+2:]...)
	for k, name := range inputs {
		if name == "_" {
			inputs[k] = ""
		}
	}
	s.Graph.Nodes = append(s.Graph.Nodes, &onnx.Node{
		Name: "make_" + fields[0], Op: fields[equals+1], Outputs: fields[:equals], Inputs: inputs, Attributes: attributes,
	})
	return s
}

// Output declares the outputs, which completes the model.
func (s Model) Output(names ...string) *onnx.Model {
	for _, name := range names {
		s.Graph.Outputs = append(s.Graph.Outputs, &onnx.ValueInfo{Name: name})
	}
	return s.Model
}

// Ints returns an attribute with a list of integers.
func Ints(name string, v ...int64) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrInts, Ints: v}
}

// Int returns an attribute with an integer.
func Int(name string, v int64) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrInt, Int: v}
}

// Same3x3 pads for a 3 by 3 window so that the result has the operand's shape.
var Same3x3 = Ints("pads", 1, 1, 1, 1)

// Wave returns elements between centre-amplitude and centre+amplitude.
func Wave(centre, amplitude float64, shape ...int64) *array.Array {
	a := array.New(array.Float32, shape...)
	for i := range a.Len() {
		a.SetFloat(i, centre+amplitude*math.Sin(float64(i*i%1009)))
	}
	return a
}

// Opset sets the operator set.
func (s Model) Opset(v int64) Model {
	s.Opsets[0].Version = v
	return s
}
