package rewrite

import "github.com/tilth-dev/tilth/compiler/graph"

// isScalar reports whether a value is a constant of one element.
func isScalar(v *graph.Value) bool { return v != nil && v.Const != nil && v.Const.Len() == 1 }

func producer(v *graph.Value) *graph.Node {
	if v == nil {
		return nil
	}
	return v.Producer
}

// constantOperand splits a commutative operator of a constant and another operand; nil if n has another form.
func constantOperand(n *graph.Node, name string, constant **graph.Value) *graph.Value {
	if !n.Is(name) || len(n.Operands) != 2 {
		return nil
	}
	for k, v := range n.Operands {
		if v.Const != nil {
			*constant = v
			return n.Operands[1-k]
		}
	}
	return nil
}
