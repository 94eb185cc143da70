package onnx

import "slices"

// sorted returns the nodes of a graph or function in an order in which each follows the nodes whose results it reads.
// Nodes in such an order keep it. Nodes of a cycle come last.
func sorted(nodes []*Node) []*Node {
	producers := map[string]int{}
	for k, n := range nodes {
		for _, name := range n.Outputs {
			producers[name] = k
		}
	}
	readers, waits, inOrder := make([][]int, len(nodes)), make([]int, len(nodes)), true
	for k, n := range nodes {
		for _, name := range n.reads(nil) {
			if p, ok := producers[name]; ok && name != "" {
				readers[p], inOrder = append(readers[p], k), inOrder && p < k
				waits[k]++
			}
		}
	}
	if inOrder {
		return nodes
	}
	var ready []int
	for k := range nodes {
		if waits[k] == 0 {
			ready = append(ready, k)
		}
	}
	list := make([]*Node, 0, len(nodes))
	for len(ready) > 0 {
		k := ready[0]
		ready = ready[1:]
		list = append(list, nodes[k])
		for _, r := range readers[k] {
			if waits[r]--; waits[r] == 0 {
				ready = append(ready, r)
			}
		}
	}
	for k, n := range nodes {
		if waits[k] > 0 {
			list = append(list, n)
		}
	}
	return list
}

// reads appends the names that a node reads, including those that its graph attributes read from outside.
func (n *Node) reads(to []string) []string {
	to = append(to, n.Inputs...)
	for _, a := range n.Attributes {
		if a.Graph == nil {
			continue
		}
		var inner []string
		own := names(a.Graph.Inputs)
		for _, t := range a.Graph.Initializers {
			own[t.Name] = true
		}
		for _, m := range a.Graph.Nodes {
			inner = m.reads(inner)
			for _, name := range m.Outputs {
				own[name] = true
			}
		}
		for _, v := range a.Graph.Outputs {
			inner = append(inner, v.Name)
		}
		to = append(to, slices.DeleteFunc(inner, func(name string) bool { return own[name] })...)
	}
	return to
}
