package op

import (
	"github.com/tilth-dev/tilth/compiler/extent"
)

// legacyOpset is the operator set from which on operands broadcast as in numpy.
const legacyOpset = 7

// AlignLegacy gives the second operand of an operator before legacyOpset axes of extent 1, so that numpy
// broadcasting matches the attributes "broadcast" and "axis": its axes correspond to those of the first operand
// from axis on. The slope of PRelu is per channel.
func AlignLegacy(b Builder, way LegacyBroadcast, n *Node, values []*Value) (err error) {
	if n.Opset >= legacyOpset || len(values) != 2 || values[0] == nil || values[1] == nil {
		return nil
	}
	rank, own := values[0].Shape.Rank(), values[1].Shape.Rank()
	axis := int64(rank - own)
	switch way {
	case LegacyByAttributes:
		if n.Int("broadcast", 0) != 0 {
			axis = n.Int("axis", axis)
		}
	case LegacyChannels:
		axis = min(1, axis)
	default:
		return nil
	}
	if axis < 0 {
		axis += int64(rank)
	}
	missing := int64(rank-own) - axis
	if axis < 0 || missing <= 0 || n.Err() != nil {
		return nil // the operator itself rejects a mismatch
	}
	defer Catch(&err)
	e := &expansion{Builder: b, node: n}
	values[1] = e.reshape(values[1], extent.Concat(values[1].Shape, ones(int(missing))))
	return nil
}

// LegacyList returns the attribute of an old operator that is operand 1 of newer ones; nil for other operators.
func LegacyList(n *Node) []int64 {
	switch {
	case n.Op == Reshape && n.Opset < 5:
		return n.Ints("shape", nil)
	case n.Op == Pad && n.Opset < 2:
		return n.Ints("paddings", nil)
	}
	return nil
}
