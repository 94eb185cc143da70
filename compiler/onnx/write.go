package onnx

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"google.golang.org/protobuf/encoding/protowire"
)

// message builds a protobuf message.
type message []byte

func (m *message) int(number protowire.Number, v int64) {
	*m = protowire.AppendTag(*m, number, protowire.VarintType)
	*m = protowire.AppendVarint(*m, uint64(v))
}

func (m *message) bytes(number protowire.Number, v []byte) {
	*m = protowire.AppendTag(*m, number, protowire.BytesType)
	*m = protowire.AppendBytes(*m, v)
}

// text leaves out an empty string.
func (m *message) text(number protowire.Number, v string) {
	if v != "" {
		m.bytes(number, []byte(v))
	}
}

func (m *message) float(number protowire.Number, v float32) {
	*m = protowire.AppendTag(*m, number, protowire.Fixed32Type)
	*m = protowire.AppendFixed32(*m, math.Float32bits(v))
}

// Encode is the model as a ModelProto. Equal models have equal encodings.
func (m *Model) Encode() []byte {
	var b message
	b.int(1, m.IRVersion)
	b.text(2, m.ProducerName)
	b.text(3, m.ProducerVersion)
	if m.Graph != nil {
		b.bytes(7, m.Graph.encode())
	}
	for _, o := range m.Opsets {
		b.bytes(8, o.encode())
	}
	for _, f := range m.Functions {
		b.bytes(25, f.encode())
	}
	return b
}

func (o Opset) encode() []byte {
	var b message
	b.text(1, o.Domain)
	b.int(2, o.Version)
	return b
}

func (f *Function) encode() []byte {
	var b message
	b.text(1, f.Name)
	for number, list := range [][]string{4: f.Inputs, 5: f.Outputs, 6: f.Attributes} {
		for _, s := range list {
			b.bytes(protowire.Number(number), []byte(s))
		}
	}
	for _, n := range f.Nodes {
		b.bytes(7, n.encode())
	}
	for _, o := range f.Opsets {
		b.bytes(9, o.encode())
	}
	b.text(10, f.Domain)
	for _, a := range f.Defaults {
		b.bytes(11, a.encode())
	}
	return b
}

func (g *Graph) encode() []byte {
	var b message
	for _, n := range g.Nodes {
		b.bytes(1, n.encode())
	}
	b.text(2, g.Name)
	for _, t := range g.Initializers {
		b.bytes(5, t.Encode())
	}
	for _, v := range g.Inputs {
		b.bytes(11, v.encode())
	}
	for _, v := range g.Outputs {
		b.bytes(12, v.encode())
	}
	return b
}

func (n *Node) encode() []byte {
	var b message
	for _, s := range n.Inputs {
		b.bytes(1, []byte(s)) // an empty name keeps its place
	}
	for _, s := range n.Outputs {
		b.bytes(2, []byte(s))
	}
	b.text(3, n.Name)
	b.text(4, n.Op)
	for _, a := range n.Attributes {
		b.bytes(5, a.encode())
	}
	b.text(7, n.Domain)
	return b
}

func (a *Attribute) encode() []byte {
	var b message
	b.text(1, a.Name)
	b.text(21, a.Ref)
	if a.Ref != "" {
		b.int(20, int64(a.Type))
		return b
	}
	switch a.Type {
	case AttrFloat:
		b.float(2, a.Float)
	case AttrInt:
		b.int(3, a.Int)
	case AttrString:
		b.bytes(4, []byte(a.String))
	case AttrTensor:
		b.bytes(5, a.Tensor.Encode())
	case AttrGraph:
		b.bytes(6, a.Graph.encode())
	case AttrFloats:
		for _, v := range a.Floats {
			b.float(7, v)
		}
	case AttrInts:
		for _, v := range a.Ints {
			b.int(8, v)
		}
	case AttrStrings:
		for _, v := range a.Strings {
			b.bytes(9, []byte(v))
		}
	}
	b.int(20, int64(a.Type))
	return b
}

// Encode is the tensor as a TensorProto with raw data.
func (t *Tensor) Encode() []byte {
	b := make(message, 0, len(t.Value.Data)+64)
	for _, e := range t.Value.Shape {
		b.int(1, e)
	}
	b.int(2, int64(DataType(t.Value.DType)))
	b.text(8, t.Name)
	b.bytes(9, t.Value.Data)
	return b
}

func (v *ValueInfo) encode() []byte {
	var shape, tensor, kind, b message
	for _, d := range v.Shape {
		var dim message
		if d.Param != "" {
			dim.text(2, d.Param)
		} else if d.Value >= 0 {
			dim.int(1, d.Value)
		}
		shape.bytes(1, dim)
	}
	b.text(1, v.Name)
	if v.DType == array.Invalid { // readers infer what is left out, and refuse what is wrong
		return b
	}
	tensor.int(1, int64(DataType(v.DType)))
	if v.HasShape {
		tensor.bytes(2, shape)
	}
	kind.bytes(1, tensor)
	b.bytes(2, kind)
	return b
}
