package graph

import "fmt"

// verify says what is wrong with a graph, if anything: a node that reads what no earlier one computes, a node whose
// types are not those of its operands, two nodes that share a place or a result, an output that nothing computes.
// Passes must leave a graph as it is.
func (g *graph) verify() error {
	known := map[*value]bool{}
	for _, v := range g.inputs {
		known[v] = true
	}
	for k, n := range g.nodes {
		if n.order != k {
			return fmt.Errorf("graph: node %q is number %d, and says %d", n.Name, k, n.order)
		}
		if len(n.in) != len(n.In) {
			return fmt.Errorf("graph: node %q has %d operands, and types of %d", n.Name, len(n.in), len(n.In))
		}
		for i, v := range n.in {
			switch {
			case v == nil:
			case v.Const == nil && !known[v]:
				return fmt.Errorf("graph: node %q reads %s before it is computed", n.Name, v.label())
			case n.In[i].DType != v.DType || fmt.Sprint(n.In[i].Shape) != fmt.Sprint(v.Shape):
				return fmt.Errorf("graph: node %q takes %s for %v%v", n.Name, v.label(), n.In[i].DType, n.In[i].Shape)
			}
		}
		if known[n.out] || n.out.producer != n {
			return fmt.Errorf("graph: the result %s of node %q is another's", n.out.label(), n.Name)
		}
		known[n.out] = true
	}
	for _, v := range g.outputs {
		if v.Const == nil && !known[v] {
			return fmt.Errorf("graph: output %s is computed by no node", v.label())
		}
	}
	return nil
}
