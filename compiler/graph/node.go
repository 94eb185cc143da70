package graph

import "github.com/tilth-dev/tilth/compiler/op"

// Node is an operator applied to values; an operand that was left out is nil.
type Node struct {
	// Node has the attributes, and the types of operands and result.
	*op.Node
	Operands []*Value
	Result   *Value
	// Order is the position in the graph's nodes; readers of a value come after its producer.
	Order int
	// Free is set when the result needs no kernel: its elements are where they should be.
	Free bool
	// Kernel is the one that computes the node, once the graph is partitioned.
	Kernel *Kernel
}

// Is reports whether there is a node and it applies the operator of the given name.
func (n *Node) Is(name string) bool { return n != nil && n.Node.Is(name) }

// IsView reports whether the node needs no kernel because its result and its operands share their memory.
func (n *Node) IsView() bool {
	return n.Free || n.Def().Kind == op.Reshaping || n.Def().Kind == op.Permute
}
