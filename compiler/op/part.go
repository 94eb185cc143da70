package op

// PartOf is where in its operand the result of a node begins, by axes, when the result is a contiguous range of the
// operand's indices on each axis: a Slice with steps of one, or a Split. ok is false for other nodes.
func PartOf(n *Node) (begin []int64, ok bool) {
	switch n.Op {
	case "Slice":
		start, step, _ := sliceRange(n)
		for _, s := range step {
			if s != 1 {
				return nil, false
			}
		}
		return start, true
	case "Split":
		axis := n.axis(n.Int("axis", 0), len(n.Out.Shape))
		begin = make([]int64, len(n.Out.Shape))
		begin[axis], _ = splitRange(n, axis)
		return begin, true
	}
	return nil, false
}

// ConcatAxis is the axis along which a Concat lines up its operands.
func ConcatAxis(n *Node) int { return n.axis(n.Int("axis", 1), len(n.Out.Shape)) }
