package op

import (
	"slices"
)

// legacyOpset is the operator set from which on operands are broadcast by the rules of numpy.
const legacyOpset = 7

// AlignLegacy gives the second operand of an operator before legacyOpset the axes of extent 1 with which the rules of
// numpy do what the attributes "broadcast" and "axis" said: its axes stand for those of the first operand from axis
// on. The slope of PRelu stands for channels.
func AlignLegacy(b Builder, way LegacyBroadcast, n *Node, values []*Value) error {
	if n.Opset >= legacyOpset || len(values) != 2 || values[0] == nil || values[1] == nil {
		return nil
	}
	rank, own := len(values[0].Shape), len(values[1].Shape)
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
		return nil // what does not fit is refused by the operator itself
	}
	shape := slices.Concat(values[1].Shape, slices.Repeat([]int64{1}, int(missing)))
	e := &expansion{Builder: b, node: n}
	values[1] = e.reshape(values[1], shape...)
	return e.err
}
