package op

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/extent"
)

// IndexedAxes returns the operand of a node that holds indices, counted from the end if negative, and the extents of
// the indexed axes. Several extents belong to the positions of the operand's last axis, in order. It returns no
// extents for operators without such an operand.
func IndexedAxes(n *Node) (operand int, extents []extent.Extent) {
	switch n.Op {
	case Gather, GatherElements, "ScatterElements", "Scatter":
		x := n.In[0].Shape
		axis := n.axis(n.Int("axis", 0), x.Rank())
		return 1, []extent.Extent{x.At(axis)}
	case "RoiAlign":
		return 2, []extent.Extent{n.In[0].Shape.At(0)}
	case "GatherND", "ScatterND":
		batch, index := int(n.Int("batch_dims", 0)), n.In[1].Shape
		return 1, n.In[0].Shape.Extents()[batch : batch+int(index.At(index.Rank()-1).Max())]
	}
	return 0, nil
}

// SizeFor returns the extent of an axis that known indices of a shape must fit: the least one, but the most if the
// shape is open, because the last indices only exist in executions with the most of an extent. Kernels clamp them in
// others.
func SizeFor(indices extent.Shape, axis extent.Extent) int64 {
	if indices.IsOpen() {
		return axis.Max()
	}
	return axis.Min()
}

// checkIndices returns an error if known indices of a node are out of range. A kernel would clamp them.
func checkIndices(n *Node) error {
	operand, extents := IndexedAxes(n)
	if extents == nil || n.In[operand].Const == nil {
		return nil
	}
	indices := n.In[operand].Const
	for k := range indices.Len() {
		e := extents[k%int64(len(extents))]
		if i, size := indices.Int(k), SizeFor(n.In[operand].Shape, e); i < -size || i >= size {
			return fmt.Errorf("%w%s", OutOfRange(i, size), fixOpen(e))
		}
	}
	return nil
}

// OutOfRange returns the error for an index of an axis that the axis lacks.
func OutOfRange(i, size int64) error {
	return fmt.Errorf("index %d is outside of %d..%d", i, -size, size-1)
}
