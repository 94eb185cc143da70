package graph

import "fmt"

// Verify checks the invariants of a graph, which passes must preserve: nodes read only results of earlier ones, node
// types match those of their operands, no two nodes share a position or a result, and every output is computed.
func (g *Graph) Verify() error {
	known := map[*Value]bool{}
	for _, v := range g.Inputs {
		known[v] = true
	}
	for _, l := range g.Loops {
		known[l.Counter] = true
	}
	for k, n := range g.Nodes {
		if n.Order != k {
			return fmt.Errorf("graph: node %q is number %d, and says %d", n.Name, k, n.Order)
		}
		if len(n.Operands) != len(n.In) {
			return fmt.Errorf("graph: node %q has %d operands, and types of %d", n.Name, len(n.Operands), len(n.In))
		}
		for i, v := range n.Operands {
			switch {
			case v == nil:
			case v.Const == nil && !known[v] && !n.ReadsNumbers(i):
				return fmt.Errorf("graph: node %q reads %s before it is computed", n.Name, v.label())
			case n.In[i].DType != v.DType || fmt.Sprint(n.In[i].Shape) != fmt.Sprint(v.Shape):
				return fmt.Errorf("graph: node %q takes %s for %v%v", n.Name, v.label(), n.In[i].DType, n.In[i].Shape)
			}
		}
		if known[n.Result] || n.Result.Producer != n {
			return fmt.Errorf("graph: the result %s of node %q is another's", n.Result.label(), n.Name)
		}
		known[n.Result] = true
	}
	for _, v := range g.Outputs {
		if v.Const == nil && !known[v] {
			return fmt.Errorf("graph: output %s is computed by no node", v.label())
		}
	}
	return nil
}
