package onnx

import (
	"io"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Model is a ModelProto.
type Model struct {
	IRVersion       int64
	ProducerName    string
	ProducerVersion string
	Opsets          []Opset
	Graph           *Graph
	Functions       []*Function
	// Digest is the SHA-256, in lower-case hex, of the model's decompressed file. With external data, it is the
	// SHA-256 of this digest and those of Data, in hex, concatenated. It is empty for a model that was not read
	// from a file.
	Digest string
	// Data lists the external files with tensor data, by name.
	Data []DataFile
}

// Opset is a version of an operator set; Domain is empty for ONNX's own.
type Opset struct {
	Domain  string
	Version int64
}

// Graph is a GraphProto.
type Graph struct {
	Name         string
	Nodes        []*Node
	Initializers []*Tensor
	// Inputs may repeat the names of initializers, which are then defaults.
	Inputs, Outputs []*ValueInfo
	// values holds the other ValueInfoProtos, which only Part uses.
	values [][]byte
}

// Function is a FunctionProto: an operator that the model defines by others.
type Function struct {
	Name, Domain    string
	Inputs, Outputs []string
	// Attributes names those without a default value; Defaults holds the others.
	Attributes []string
	Defaults   []*Attribute
	Nodes      []*Node
	Opsets     []Opset
}

// Node is a NodeProto: one application of an operator. An empty name among Inputs or Outputs is an omitted optional
// one.
type Node struct {
	Name, Op, Domain string
	Inputs, Outputs  []string
	Attributes       []*Attribute
}

// Attribute is an AttributeProto; Type selects the valid field.
type Attribute struct {
	Name string
	// Ref names the attribute of the enclosing function that supplies the value; no other field is then valid.
	Ref     string
	Type    AttributeType
	Float   float32
	Int     int64
	String  string
	Tensor  *Tensor
	Graph   *Graph
	Floats  []float32
	Ints    []int64
	Strings []string
}

// AttributeType is AttributeProto.AttributeType.
type AttributeType int32

// The supported attribute types.
const (
	AttrUndefined AttributeType = 0
	AttrFloat     AttributeType = 1
	AttrInt       AttributeType = 2
	AttrString    AttributeType = 3
	AttrTensor    AttributeType = 4
	AttrGraph     AttributeType = 5
	AttrFloats    AttributeType = 6
	AttrInts      AttributeType = 7
	AttrStrings   AttributeType = 8

	// attrSparseTensor is read as AttrTensor.
	attrSparseTensor AttributeType = 11
)

// Tensor is a TensorProto.
type Tensor struct {
	Name  string
	Value *array.Array
	// Narrow is the TensorProto.DataType of 4-bit integers, held in 8 bits, and of 8-bit floats, held as float32; 0
	// for others.
	Narrow int64
	// Content writes the elements, little-endian, of a tensor without elements in its Value. It is only used to
	// write a model.
	Content func(io.Writer) error
}

// ValueInfo is a ValueInfoProto of a tensor.
type ValueInfo struct {
	Name string
	// DType is Invalid if the model gives no type or an unsupported one.
	DType array.DType
	// Kind names a type other than tensor ("sequence", "map", "optional", ...); empty for a tensor.
	Kind string
	// Shape has one entry per dimension; HasShape distinguishes a scalar from an unknown shape.
	Shape    []Dim
	HasShape bool
}

// Dim is one extent: a value, or a name if Value is negative (an empty name means unknown).
type Dim struct {
	Value int64
	Param string
}

// OpsetOf returns the version of a domain in a list of imports; 0 if it is missing.
func OpsetOf(imports []Opset, domain string) int64 {
	for _, o := range imports {
		if o.Domain == domain {
			return o.Version
		}
	}
	return 0
}

// ConstantBytes returns the size of all tensors in the model: initializers and attributes, including those of
// functions and nested graphs.
func (m *Model) ConstantBytes() int64 {
	size := graphBytes(m.Graph)
	for _, f := range m.Functions {
		size += nodesBytes(f.Nodes) + attributesBytes(f.Defaults)
	}
	return size
}

func graphBytes(g *Graph) (size int64) {
	for _, t := range g.Initializers {
		size += int64(len(t.Value.Data))
	}
	return size + nodesBytes(g.Nodes)
}

func nodesBytes(nodes []*Node) (size int64) {
	for _, n := range nodes {
		size += attributesBytes(n.Attributes)
	}
	return size
}

func attributesBytes(attributes []*Attribute) (size int64) {
	for _, a := range attributes {
		if a.Tensor != nil {
			size += int64(len(a.Tensor.Value.Data))
		}
		if a.Graph != nil {
			size += graphBytes(a.Graph)
		}
	}
	return size
}
