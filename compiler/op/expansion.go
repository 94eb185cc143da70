package op

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// Item is what a name of the model stands for while it is read: a tensor, a sequence, or an optional. An optional with
// an element is that element; one without is an item with neither.
type Item struct {
	Tensor   *Value
	Sequence *Sequence
}

// Sequence is a list of tensors whose length is known when the model is read. It is never changed once made.
type Sequence struct{ Elements []*Value }

// Dequantised is what a DequantizeLinear made a value of: integer minus zero, times scale. Scale and zero are as in
// the model: one for all, one for each position on the axis, or, with Block, one for each block of so many positions
// there; zero may be nil.
type Dequantised struct {
	Integer, Scale, Zero *Value
	Axis, Block          int64
}

// Expansion writes a node as others, or works on what is no tensor. It gives the node's outputs in order; nil ones are
// not supported. in has an item for each operand, nil for one that was left out; used tells which outputs somebody
// reads.
type Expansion func(b Builder, n *Node, in []*Item, used []bool) ([]*Item, error)

// Builder makes what a model is read into. Names of what is made begin with the name of a node.
type Builder interface {
	// Add applies an operator and gives its result: a constant where its operands are known. n needs only Name, Op,
	// Opset and Attrs (and Output, Outputs); an operand that is left out is nil.
	Add(n Node, in ...*Value) (*Value, error)
	// Constant makes a value of known elements for the node of the given name.
	Constant(node string, a *array.Array) *Value
	// Body adds the nodes of a graph that is an attribute of a node, and gives its outputs. Its names see those around
	// the node; in are its inputs.
	Body(g *onnx.Graph, in []*Item) ([]*Item, error)
	// Budget pays for what is made; Add, Constant and Body charge it themselves.
	Budget() *Budget
}
