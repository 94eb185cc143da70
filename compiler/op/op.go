package op

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// Kind says how an operator's result relates to its operands, which decides what it may be fused with.
type Kind uint8

// The kinds.
const (
	// ElementWise computes each element from the elements of the operands at the same (broadcast) index.
	ElementWise Kind = iota + 1
	// Injective moves elements: each is read from one place that depends on its index.
	Injective
	// Reduction combines many elements into each; it anchors a kernel.
	Reduction
	// Reshaping gives the same elements in the same row-major order another shape.
	Reshaping
	// Permute gives the same elements other axes: it costs nothing but a Layout.
	Permute
	// Known is computed from types and attributes alone when the model is read.
	Known
)

// Type is the element type and shape of a value.
type Type struct {
	DType array.DType
	Shape []int64
}

// String is for example f32[1,64,56,56].
func (t Type) String() string { return fmt.Sprintf("%v%v", t.DType, t.Shape) }

// Value is an operand as shape rules see it: its type, and its elements when they are known. An optional operand that
// was left out has the type Invalid.
type Value struct {
	Type
	Const *array.Array
	// From is what the value was dequantised from, while the model is read; nil for others.
	From *Dequantised
	// Open is what of its extents depends on data, while the model is read; nil for others.
	Open *Open
}

// Present reports whether the operand was given.
func (v Value) Present() bool { return v.DType != array.Invalid }

// Node is one application of an operator with the types of its operands known. It computes one result; an ONNX node
// with several becomes several.
type Node struct {
	// Name is the model's name for it, for messages and listings.
	Name  string
	Op    string
	Opset int64
	Attrs map[string]*onnx.Attribute
	In    []Value
	// Output is the result that is computed, of Outputs.
	Output, Outputs int
	// Weights is set, while the model is read, where the result, transposed or not, is the second factor of products
	// alone: a dequantisation of known integers is not computed then, since products dequantise by themselves.
	Weights bool
	// Out is the type of the result; Infer sets it.
	Out Type
	// Budget pays for what Infer, Evaluate and Lower compute; they panic when it is spent, as Budget.Catch expects.
	Budget *Budget

	def *Def
	err error
	// result is that of a Known operator, and resize what a Resize does, once Infer has found them.
	result *array.Array
	resize *resize
}

// Def is an operator. It has tensor expressions, is known when the model is read, or is written as others.
type Def struct {
	Name string
	// Domain is empty for ONNX's own.
	Domain string
	// Internal operators stand in no model: expansions and passes make them.
	Internal bool
	// Kind is unset for operators that are always written as others.
	Kind Kind
	// MinIn and MaxIn bound the number of operands; MaxIn < 0 means any.
	MinIn, MaxIn int
	// Infer is the shape rule.
	Infer func(n *Node) (Type, error)
	// Lower gives the tensor expressions; operands and the result are indexed by the operator's own axes.
	Lower func(l *Lowering, n *Node, in []Operand) (Operand, error)
	// Expand writes the operator as others when the model is read. Where Expands is set, only the nodes for which it
	// holds are written so, and the rest are lowered.
	Expand  Expansion
	Expands func(n *Node, in []*Item) bool
	// Layout is the natural order of the result's axes in memory given the operands'; nil for the first operand's
	// where the ranks are equal, and row-major otherwise.
	Layout func(n *Node, in [][]int) []int
	// Perm is the order of axes of a Permute: axis k of the result is axis Perm[k] of the operand.
	Perm func(n *Node) []int
	// Eval is the result of a Known operator.
	Eval func(n *Node) (*array.Array, error)
	// Work estimates the scalar operations of one execution; nil for one per element of the result.
	Work func(n *Node) float64
	// Label describes a task that this operator anchors, such as "conv"; Detail adds sizes such as "k3x3 s2".
	Label  string
	Detail func(n *Node) string
	// Spatial adds the number of spatial axes to Label, as in "conv2d"; ChannelsOut describes the result by its
	// channels alone.
	Spatial, ChannelsOut bool
	Traits
}

// Def is the node's operator; nil before Infer.
func (n *Node) Def() *Def { return n.def }

// Infer makes d the node's operator, checks operands and attributes, and sets Out.
func Infer(n *Node, d *Def) error {
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
	if len(out.Shape) > onnx.MaxRank {
		return fmt.Errorf("the result would have rank %d: up to %d is supported", len(out.Shape), onnx.MaxRank)
	}
	if _, err := array.CheckedBytes(out.DType, out.Shape); err != nil {
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
	return float64(array.Elements(n.Out.Shape))
}

// LayoutOf is the natural order of the result's axes in memory.
func LayoutOf(n *Node, in [][]int) []int {
	if n.def.Layout != nil {
		return n.def.Layout(n, in)
	}
	if len(in) > 0 && len(in[0]) == len(n.Out.Shape) {
		return in[0]
	}
	return RowMajor(len(n.Out.Shape))
}
