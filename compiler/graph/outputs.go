package graph

import "github.com/tilth-dev/tilth/compiler/op"

// separateOutputs gives an output a copy of its own when its bytes would otherwise be those of an input or of another
// output, seen through reshapes and transpositions.
func separateOutputs(g *graph) error {
	taken := map[*value]bool{}
	for k, v := range g.outputs {
		if isEmpty(v.Shape) {
			continue // a constant without bytes
		}
		root := v
		for root.producer != nil && root.producer.isView() {
			root = root.producer.in[0]
		}
		if root.producer == nil || taken[root] {
			if err := copyOutput(g, k); err != nil {
				return err
			}
			continue
		}
		taken[root] = true
	}
	return nil
}

// copyOutput puts a copy between output k and the value it has.
func copyOutput(g *graph, k int) error {
	v := g.outputs[k]
	n, err := copyOf(g, v, v.name)
	if err != nil {
		return err
	}
	v.name += ".source"
	g.nodes = append(g.nodes, n)
	g.outputs[k] = n.out
	return nil
}

func copyOf(g *graph, v *value, name string) (*node, error) {
	n, err := g.apply(op.Node{Name: name, Op: op.Copy}, name, v)
	if err != nil {
		return nil, err
	}
	n.out.layout = op.RowMajor(len(v.Shape))
	return n, nil
}
