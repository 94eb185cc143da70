package graph

// isScalar reports whether a value is a constant of one element.
func isScalar(v *value) bool { return v != nil && v.Const != nil && v.Const.Len() == 1 }

func producer(v *value) *node {
	if v == nil {
		return nil
	}
	return v.producer
}

// constantOperand splits a commutative operator of a constant and another operand; nil when n is none.
func constantOperand(n *node, name string, constant **value) *value {
	if !n.is(name) || len(n.in) != 2 {
		return nil
	}
	for k, v := range n.in {
		if v.Const != nil {
			*constant = v
			return n.in[1-k]
		}
	}
	return nil
}
