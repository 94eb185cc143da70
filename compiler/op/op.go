package op

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// Kind classifies how an operator's result relates to its operands, which determines its fusion.
type Kind uint8

// The kinds of operators.
const (
	// ElementWise computes each element from the operands' elements at the same (broadcast) index.
	ElementWise Kind = iota + 1
	// Injective moves elements: each is read from one place that depends on its index.
	Injective
	// Reduction combines many elements into each; it anchors a kernel.
	Reduction
	// Reshaping keeps the elements in row-major order and changes the shape.
	Reshaping
	// Permute reorders the axes: it costs nothing but a Layout.
	Permute
	// Known is computed from types and attributes alone when the model is read.
	Known
	// Control begins or ends a loop.
	Control
)

// Type is the element type and shape of a value.
type Type struct {
	DType array.DType
	Shape extent.Shape
}

// String returns for example f32[1,64,56,56].
func (t Type) String() string { return fmt.Sprintf("%v%v", t.DType, t.Shape) }

// Value is an operand for shape rules: its type, and its elements if known. An omitted optional operand has the
// type Invalid.
type Value struct {
	Type
	Const *array.Array
	// From is the source of a dequantised value, while the model is read; nil for others.
	From *Dequantised
	// Numbers holds the elements in row-major order if they are known as expressions of open extents, while the model
	// is read; Const is nil then.
	Numbers []Number
	// Narrow is onnx.Tensor.Narrow of the value, while the model is read.
	Narrow int64
}

// Present reports whether the operand was given.
func (v Value) Present() bool { return v.DType != array.Invalid }

// Node is one application of an operator with known operand types. It computes one result; an ONNX node with
// several results becomes several nodes.
type Node struct {
	// Name is the node's name in the model, for messages and listings.
	Name  string
	Op    string
	Opset int64
	Attrs map[string]*onnx.Attribute
	In    []Value
	// Output is the index of the computed result among Outputs.
	Output, Outputs int
	// Weights is set, while the model is read, if the result, possibly transposed, is only used as the second
	// factor of products: a dequantisation of known integers is then deferred to the products.
	Weights bool
	// FloatKernels is set, while the model is read, if kernels of convolutions become floats (array.Storage).
	FloatKernels bool
	// Out is the type of the result; Infer sets it.
	Out Type
	// Numbers holds the elements of the result of a Numbers operator.
	Numbers []Number
	// Budget is charged by Infer, Evaluate and Lower; they panic if it is exhausted, for Budget.Catch.
	Budget *Budget

	def *Def
	err error
	// read has a bit for each operand with Numbers that a rule has read.
	read uint64
	// result is that of a Known operator, and resize the sampling of a Resize, set by Infer.
	result *array.Array
	resize *resize
}

// Def defines an operator. It has tensor expressions, is known when the model is read, or is expanded into others.
type Def struct {
	Name string
	// Domain is empty for ONNX's own.
	Domain string
	// Internal operators do not occur in models: expansions and passes create them.
	Internal bool
	// Kind is unset for operators that are always expanded.
	Kind Kind
	// MinIn and MaxIn bound the number of operands; MaxIn < 0 means any.
	MinIn, MaxIn int
	// Infer is the shape rule. It is called through the function Infer, since Get ends it at the first error.
	Infer func(n *Node) (Type, error)
	// Lower returns the tensor expressions; operands and the result are indexed by the operator's own axes. It is
	// called through LowerPlain, since Get ends it at the first error.
	Lower func(l *Lowering, n *Node, in []Operand) Operand
	// Expand expands the operator when the model is read. If Expands is set, it applies only to nodes for which
	// Expands holds, and the others are lowered.
	Expand  Expansion
	Expands func(n *Node, in []*Item) bool
	// Layout returns the natural memory order of the result's axes for given operand layouts; if nil, it is that of
	// the first operand for equal ranks, and row-major otherwise.
	Layout func(n *Node, in [][]int) []int
	// Perm returns the axis order of a Permute: axis k of the result is axis Perm[k] of the operand.
	Perm func(n *Node) []int
	// Work estimates the scalar operations of one execution; if nil, one per element of the result.
	Work func(n *Node) float64
	// Label describes a task that this operator anchors, such as "conv"; Detail adds sizes such as "k3x3 s2".
	Label  string
	Detail func(n *Node) string
	// Spatial adds the number of spatial axes to Label, as in "conv2d"; ChannelsOut describes the result by its
	// channels alone.
	Spatial, ChannelsOut bool
	Traits
}

// Def returns the node's operator; nil before Infer.
func (n *Node) Def() *Def { return n.def }

// IsKnown reports whether Infer computed the result, from types, attributes and known operands.
func (n *Node) IsKnown() bool { return n.result != nil }

// Infer sets the node's operator, checks operands and attributes, and sets Out.
func Infer(n *Node, d *Def) (err error) {
	defer extent.Catch(&err)
	defer Catch(&err)
	n.def = d
	if len(n.In) < d.MinIn || d.MaxIn >= 0 && len(n.In) > d.MaxIn {
		return fmt.Errorf("%d inputs, want %d to %d", len(n.In), d.MinIn, d.MaxIn)
	}
	needed := d.MinIn
	if d.MaxIn < 0 {
		needed = len(n.In)
	}
	for k := range needed {
		if !n.In[k].Present() {
			return fmt.Errorf("input %d is missing", k)
		}
	}
	out, err := d.Infer(n)
	if err == nil {
		err = n.err
	}
	if err != nil {
		return err
	}
	if out.Shape.Rank() > onnx.MaxRank {
		return fmt.Errorf("the result would have rank %d: up to %d is supported", out.Shape.Rank(), onnx.MaxRank)
	}
	if _, err := array.CheckedBytes(out.DType, out.Shape.Max()); err != nil {
		return err
	}
	n.Out = out
	return nil
}

// Work estimates the scalar operations of one execution.
func Work(n *Node) float64 {
	if n.def.Work != nil {
		return n.def.Work(n)
	}
	return float64(array.Elements(n.Out.Shape.Max()))
}

// LayoutOf returns the natural memory order of the result's axes.
func LayoutOf(n *Node, in [][]int) []int {
	if n.def.Layout != nil {
		return n.def.Layout(n, in)
	}
	if len(in) > 0 && len(in[0]) == n.Out.Shape.Rank() {
		return in[0]
	}
	return RowMajor(n.Out.Shape.Rank())
}
