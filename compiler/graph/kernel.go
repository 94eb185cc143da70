package graph

// Kernel holds the nodes that one kernel computes, in topological order.
type Kernel struct {
	// Anchor is the node around which the kernel grew.
	Anchor *Node
	Nodes  []*Node
	// Stored lists the results that others read, in order; the last node's is the last.
	Stored []*Value
	// Prologue lists results that only the anchor reads; schedules choose how much of them to compute at a time.
	Prologue []*Value
}

// Tail returns the last node.
func (k *Kernel) Tail() *Node { return k.Nodes[len(k.Nodes)-1] }

// Begin returns the order of the first node whose result is stored. All inputs of the kernel are computed before
// that node, so that kernels in this order can run one after the other.
func (k *Kernel) Begin() int { return k.Stored[0].Producer.Order }
