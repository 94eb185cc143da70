package graph

// Kernel is the nodes that one kernel computes, in topological order.
type Kernel struct {
	// Anchor is the node around which the kernel grew.
	Anchor *Node
	Nodes  []*Node
	// Stored are the results that others read, in order; the last node's is the last.
	Stored []*Value
	// Prologue are results that only the anchor reads; schedules decide how much of them is computed at a time.
	Prologue []*Value
}

// Tail is the last node.
func (k *Kernel) Tail() *Node { return k.Nodes[len(k.Nodes)-1] }

// Begin is the order of the first node whose result is stored. Everything that the kernel reads is computed before
// that one, so that kernels in this order can run one after the other.
func (k *Kernel) Begin() int { return k.Stored[0].Producer.Order }
