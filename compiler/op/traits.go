package op

import "github.com/tilth-dev/tilth/compiler/extent"

// Traits are the properties of operators that passes over graphs query, so that they need not know their names.
type Traits struct {
	// Product returns how the operator multiplies its first operand by weights; nil for other operators.
	Product func(n *Node) Product
	// Concat returns the axis along which the operator concatenates; nil for other operators.
	Concat func(n *Node) int
	// Part returns the start of the result in the first operand, by axes, if it is a contiguous range of the
	// operand's indices on each axis; nil for operators for which it never is.
	Part func(n *Node) (begin []extent.Extent, ok bool)
	// ZeroPads is set if the attribute "pads" adds zeros around the first operand, so that a Pad can be folded into
	// it.
	ZeroPads bool
	// PerChannel is set if each operand may be a constant per channel instead of a single one.
	PerChannel bool
	// Tiled is set if schedules store the result of each tile while they compute the next, so that a kernel can
	// store several.
	Tiled bool
	// Once is set if each element of the first operand is read once.
	Once bool
	// Rowwise is set if each element of the first operand is read a few times, only for its own row.
	Rowwise bool
	// Selects is set if each element of the result is one of the operand's, chosen by order.
	Selects bool
	// Legacy is the operand broadcasting before the rules of numpy.
	Legacy LegacyBroadcast
}

// Product describes one application of a product. Operand 1 holds the weights; operand 2, if present, is added.
type Product struct {
	// Axis is the channel axis of the result, WeightAxis that of the weights.
	Axis, WeightAxis int
	// Mergeable is set if each channel depends on the whole operand and its own weights, so that products of one
	// operand can be merged.
	Mergeable bool
	// Scalable is set if a factor and a term per channel can be folded into the weights and operand 2.
	Scalable bool
	// Pointwise is set if each result reads one position of the operand, and the position serves many results, so
	// that the operand can be computed where it is read.
	Pointwise bool
}

// LegacyBroadcast is the way an operator broadcast its second operand before operator set 7.
type LegacyBroadcast uint8

const (
	// LegacyNone is for operators whose operands do not broadcast.
	LegacyNone LegacyBroadcast = iota
	// LegacyByAttributes aligns the second operand with the axes of the first by "broadcast" and "axis".
	LegacyByAttributes
	// LegacyChannels aligns the second operand with the channels of the first.
	LegacyChannels
)

// Product describes the node as a product; false for other nodes.
func (n *Node) Product() (Product, bool) {
	if n.def.Product == nil {
		return Product{}, false
	}
	return n.def.Product(n), true
}

// Part returns the start of the node's result in its first operand, by axes; false if it is not a part.
func (n *Node) Part() (begin []extent.Extent, ok bool) {
	if n.def.Part == nil {
		return nil, false
	}
	return n.def.Part(n)
}

// Concat returns the axis along which the node concatenates; false for other nodes.
func (n *Node) Concat() (axis int, ok bool) {
	if n.def.Concat == nil {
		return 0, false
	}
	return n.def.Concat(n), true
}

// Is reports whether the node applies the named operator. It is for passes that recognise a pattern of particular
// operators; properties of several operators are traits.
func (n *Node) Is(name string) bool { return n.Op == name }

// internal marks an operator that does not occur in models.
func (d Def) internal() Def {
	d.Internal = true
	return d
}

// with returns the operator with traits.
func (d Def) with(t Traits) Def {
	d.Traits = t
	return d
}
