package graph

import "github.com/tilth-dev/tilth/compiler/op"

// Node is an operator applied to values; an omitted operand is nil.
type Node struct {
	// Node holds the attributes, and the types of operands and result.
	*op.Node
	Operands []*Value
	Result   *Value
	// Order is the position in the graph's nodes; readers of a value come after its producer.
	Order int
	// Free is set if the result needs no kernel, since its elements are already in place.
	Free bool
	// Kernel is the kernel that computes the node, once the graph is partitioned.
	Kernel *Kernel
}

// Is reports whether the node exists and applies the named operator.
func (n *Node) Is(name string) bool { return n != nil && n.Node.Is(name) }

// IsView reports whether the node needs no kernel because its result and its operands share their memory.
func (n *Node) IsView() bool {
	return n.Free || n.Def().Kind == op.Reshaping || n.Def().Kind == op.Permute
}
