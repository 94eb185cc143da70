package op

// Traits are what passes over graphs ask operators, so that they need not know their names.
type Traits struct {
	// Product tells how the operator multiplies its first operand by weights; nil for those that do not.
	Product func(n *Node) Product
	// Concat is the axis along which the operator lines up its operands; nil for those that do not.
	Concat func(n *Node) int
	// Part is where in the first operand the result begins, by axes, if it is a contiguous range of the operand's
	// indices on each axis; nil for those that never are one.
	Part func(n *Node) (begin []int64, ok bool)
	// ZeroPads tells that the attribute "pads" puts zeros around the first operand, so that a Pad can go into it.
	ZeroPads bool
	// PerChannel tells that each operand may be a constant for each channel as well as one for all.
	PerChannel bool
	// Tiled tells that schedules store a result of each tile while they compute the next, so that a kernel can store
	// more than one.
	Tiled bool
	// Once tells that each element of the first operand is read once.
	Once bool
	// Rowwise tells that each element of the first operand is read a few times, for the row that it is in and no
	// other.
	Rowwise bool
	// Selects tells that each element of the result is one of the operand's, chosen by their order.
	Selects bool
	// Legacy is how operands were broadcast before the rules of numpy.
	Legacy LegacyBroadcast
}

// Product describes one application of a product. Operand 1 has the weights; operand 2, if there is one, is added.
type Product struct {
	// Axis counts the channels in the result, WeightAxis in the weights.
	Axis, WeightAxis int
	// Mergeable tells that each channel is made of the whole operand and weights of its own, so that products of one
	// operand can be one.
	Mergeable bool
	// Scalable tells that a factor and a term for each channel can go into the weights and operand 2.
	Scalable bool
	// Pointwise tells that each result reads one position of the operand, and the position serves many of them, so
	// that the operand can be computed where it is read.
	Pointwise bool
}

// LegacyBroadcast says how an operator broadcast its second operand before operator set 7.
type LegacyBroadcast uint8

const (
	// LegacyNone is the way of operators whose operands are not broadcast.
	LegacyNone LegacyBroadcast = iota
	// LegacyByAttributes aligns the second operand with the axes of the first as "broadcast" and "axis" say.
	LegacyByAttributes
	// LegacyChannels aligns the second operand with the channels of the first.
	LegacyChannels
)

// Product describes the node as a product; false when it is none.
func (n *Node) Product() (Product, bool) {
	if n.def.Product == nil {
		return Product{}, false
	}
	return n.def.Product(n), true
}

// Part is where in its first operand the result of the node begins, by axes; false when it is no part of it.
func (n *Node) Part() (begin []int64, ok bool) {
	if n.def.Part == nil {
		return nil, false
	}
	return n.def.Part(n)
}

// Concat is the axis along which the node lines up its operands; false when it does not.
func (n *Node) Concat() (axis int, ok bool) {
	if n.def.Concat == nil {
		return 0, false
	}
	return n.def.Concat(n), true
}

// Is reports whether the node applies the operator of the given name. It is for passes that recognise a pattern of
// certain operators; what holds of several is a trait.
func (n *Node) Is(name string) bool { return n.Op == name }

// internal is the operator as one that stands in no model.
func (d Def) internal() Def {
	d.Internal = true
	return d
}

// with is the operator with traits.
func (d Def) with(t Traits) Def {
	d.Traits = t
	return d
}
