package op

import "fmt"

// IndexedAxes returns the operand of a node that holds indices, counted from the end if negative, and the extents of
// the indexed axes. Several extents belong to the positions of the operand's last axis, in order. It returns no
// extents for operators without such an operand.
func IndexedAxes(n *Node) (operand int, extents []int64) {
	switch n.Op {
	case Gather, GatherElements, "ScatterElements", "Scatter":
		x := n.In[0].Shape.Fixed()
		axis := n.axis(n.Int("axis", 0), len(x))
		return 1, x[axis : axis+1]
	case "RoiAlign":
		return 2, n.In[0].Shape.Fixed()[:1]
	case "GatherND", "ScatterND":
		batch, index := n.Int("batch_dims", 0), n.In[1].Shape.Fixed()
		return 1, n.In[0].Shape.Fixed()[batch : batch+index[len(index)-1]]
	}
	return 0, nil
}

// checkIndices returns an error if known indices of a node are out of range. A kernel would clamp them.
func checkIndices(n *Node) error {
	operand, extents := IndexedAxes(n)
	if extents == nil || n.In[operand].Const == nil {
		return nil
	}
	indices := n.In[operand].Const
	for k := range indices.Len() {
		if i, extent := indices.Int(k), extents[k%int64(len(extents))]; i < -extent || i >= extent {
			return OutOfRange(i, extent)
		}
	}
	return nil
}

// OutOfRange returns the error for an index of an axis that the axis lacks.
func OutOfRange(i, extent int64) error {
	return fmt.Errorf("index %d is outside of %d..%d", i, -extent, extent-1)
}
