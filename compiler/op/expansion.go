package op

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// Item is the meaning of a name while a model is read: a tensor, a sequence, or an optional. An optional with an
// element is that element; an empty one is an item with neither.
type Item struct {
	Tensor   *Value
	Sequence *Sequence
}

// Sequence is a list of tensors whose length is known when the model is read. It is immutable.
type Sequence struct{ Elements []*Value }

// Dequantised is the source of a dequantised value: integer minus zero, times scale. Scale and zero are as in the
// model: a single number, one per position on the axis, or, with Block, one per block of that many positions; zero
// may be nil.
type Dequantised struct {
	Integer, Scale, Zero *Value
	Axis, Block          int64
	// floats is the value that readers of deferred weights share.
	floats *Value
}

// Expansion replaces a node by others, or operates on items other than tensors. It returns the node's outputs in
// order; a nil output is unsupported. in has an item for each operand, nil for an omitted one; used holds for each
// output whether it is read.
type Expansion func(b Builder, n *Node, in []*Item, used []bool) ([]*Item, error)

// Builder creates the result of reading a model. Names of new values start with the name of a node.
type Builder interface {
	// Add applies an operator and returns its result: a constant if its operands are known. n needs only Name, Op,
	// Opset and Attrs (and Output, Outputs); an omitted operand is nil.
	Add(n Node, in ...*Value) (*Value, error)
	// Constant creates a value of known elements for the named node.
	Constant(node string, a *array.Array) *Value
	// Extents creates a list of extents for the named node: a constant if none is open.
	Extents(node string, list []extent.Extent) *Value
	// Counted returns the extent that a computed scalar, from 0 to most, has in each execution.
	Counted(count *Value, most int64) extent.Extent
	// Body adds the nodes of a graph attribute, and returns its outputs. Its names include those around the node;
	// in holds its inputs.
	Body(g *onnx.Graph, in []*Item) ([]*Item, error)
	// Branch adds the nodes of a graph that runs only if a condition, computed from data, has a value.
	Branch(g *onnx.Graph, cond *Value, is bool) ([]*Item, error)
	// Loop adds a loop, and returns its states after the last iteration and the stacked parts of all iterations. After
	// an error nothing is added.
	Loop(l Loop) (after, stacked []*Value, err error)
	// RunsLoops reports whether executions can run loops of known counts; otherwise they are unrolled.
	RunsLoops() bool
	// Require makes runs fail if a condition, computed from data, does not have a value; why is the message.
	Require(cond *Value, is bool, why string) error
	// Budget returns the budget; Add, Constant and Body charge it themselves.
	Budget() *Budget
}
