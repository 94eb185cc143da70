package onnx

import (
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Encode returns the model as a ModelProto. Equal models have equal encodings. The tensors' elements must be in
// memory.
func (m *Model) Encode() []byte { return m.encode().encoded() }

// WriteTo writes the encoding of the model, tensor by tensor, and returns its size in bytes.
func (m *Model) WriteTo(w io.Writer) (int64, error) {
	encoded := m.encode()
	return encoded.size, encoded.write(w)
}

func (m *Model) encode() *message {
	var b message
	b.int(1, m.IRVersion)
	b.text(2, m.ProducerName)
	b.text(3, m.ProducerVersion)
	if m.Graph != nil {
		b.message(7, m.Graph.encode())
	}
	messages(&b, 8, m.Opsets)
	messages(&b, 25, m.Functions)
	return &b
}

// messages appends a repeated field of messages.
func messages[T interface{ encode() *message }](b *message, number protowire.Number, list []T) {
	for _, m := range list {
		b.message(number, m.encode())
	}
}

func (o Opset) encode() *message {
	var b message
	b.text(1, o.Domain)
	b.int(2, o.Version)
	return &b
}

func (f *Function) encode() *message {
	var b message
	b.text(1, f.Name)
	b.texts(4, f.Inputs)
	b.texts(5, f.Outputs)
	b.texts(6, f.Attributes)
	messages(&b, 7, f.Nodes)
	messages(&b, 9, f.Opsets)
	b.text(10, f.Domain)
	messages(&b, 11, f.Defaults)
	return &b
}

func (g *Graph) encode() *message {
	var b message
	messages(&b, 1, g.Nodes)
	b.text(2, g.Name)
	messages(&b, 5, g.Initializers)
	messages(&b, 11, g.Inputs)
	messages(&b, 12, g.Outputs)
	return &b
}

func (n *Node) encode() *message {
	var b message
	b.texts(1, n.Inputs)
	b.texts(2, n.Outputs)
	b.text(3, n.Name)
	b.text(4, n.Op)
	messages(&b, 5, n.Attributes)
	b.text(7, n.Domain)
	return &b
}

func (a *Attribute) encode() *message {
	var b message
	b.text(1, a.Name)
	b.text(21, a.Ref)
	if a.Ref != "" {
		b.int(20, int64(a.Type))
		return &b
	}
	switch a.Type {
	case AttrFloat:
		b.float(2, a.Float)
	case AttrInt:
		b.int(3, a.Int)
	case AttrString:
		b.bytes(4, []byte(a.String))
	case AttrTensor:
		b.message(5, a.Tensor.encode())
	case AttrGraph:
		b.message(6, a.Graph.encode())
	case AttrFloats:
		for _, v := range a.Floats {
			b.float(7, v)
		}
	case AttrInts:
		for _, v := range a.Ints {
			b.int(8, v)
		}
	case AttrStrings:
		b.texts(9, a.Strings)
	}
	b.int(20, int64(a.Type))
	return &b
}

// Encode returns the tensor as a TensorProto with raw data.
func (t *Tensor) Encode() []byte { return t.encode().encoded() }

func (t *Tensor) encode() *message {
	var b message
	for _, e := range t.Value.Shape {
		b.int(1, e)
	}
	b.int(2, int64(DataType(t.Value.DType)))
	b.text(8, t.Name)
	if t.Content != nil {
		b.content(9, array.Elements(t.Value.Shape)*t.Value.DType.Bytes(), t.Content)
	} else {
		b.content(9, int64(len(t.Value.Data)), func(w io.Writer) error { _, err := w.Write(t.Value.Data); return err })
	}
	return &b
}

func (v *ValueInfo) encode() *message {
	var shape, tensor, kind, b message
	for _, d := range v.Shape {
		var dim message
		if d.Param != "" {
			dim.text(2, d.Param)
		} else if d.Value >= 0 {
			dim.int(1, d.Value)
		}
		shape.message(1, &dim)
	}
	b.text(1, v.Name)
	if v.DType == array.Invalid { // readers infer missing types, and reject wrong ones
		return &b
	}
	tensor.int(1, int64(DataType(v.DType)))
	if v.HasShape {
		tensor.message(2, &shape)
	}
	kind.message(1, &tensor)
	b.message(2, &kind)
	return &b
}
