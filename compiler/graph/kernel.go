package graph

// group is the nodes that one kernel computes, in topological order.
type group struct {
	anchor *node
	nodes  []*node
	// stored are the results that others read, in order; the last node's is the last.
	stored []*value
	// prologue are results that only the anchor reads; schedules decide how much of them is computed at a time.
	prologue []*value
}

func (g *group) tail() *node { return g.nodes[len(g.nodes)-1] }

// begin is the order of the first node whose result is stored. Everything that the kernel reads is computed before
// that one, so that kernels in this order can run one after the other.
func (g *group) begin() int { return g.stored[0].producer.order }
