package op

import (
	"cmp"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// windowAttribute is not in ONNX: the causal attention of ONNX Runtime has a window of that many keys.
const windowAttribute = "window"

// sinkInput is not in ONNX: an input of attention with the score of a sink, (1, heads, 1, 1) or (1, 1, 1, 1).
const sinkInput = 7

var expandAttentionDefs = []Def{
	def("Attention", 3, 7, (*expansion).attention),
	def("RotaryEmbedding", 3, 4, (*expansion).rotaryEmbedding),
}

// attention computes softmax(scale * q kᵀ + bias) v for each head, where groups of query heads may share a head of
// k and v. Outputs 1 and 2 are keys and values with those of the past in front, output 3 the scores.
func (e *expansion) attention() []*Item {
	q, k, v := e.tensor(0), e.tensor(1), e.tensor(2)
	rank := q.Shape.Rank()
	q, k, v = e.heads(q, "q_num_heads"), e.heads(k, "kv_num_heads"), e.heads(v, "kv_num_heads")
	k, v = e.withPast(4, k), e.withPast(5, v)
	e.checkHeads(q, k, v)
	qs, ks, vs := q, k, v
	if q.Shape.At(1) != k.Shape.At(1) {
		qs, ks, vs = e.grouped(q, k), e.grouped(k, k), e.grouped(v, k)
	}
	scores := e.scores(qs, ks)
	capped := e.capped(scores)
	biased := capped
	if bias := e.attentionBias(q, k); bias != nil {
		biased = e.op(Add, nil, capped, e.groupedBias(bias, q, k))
	}
	weights := e.weights(biased, q, k, biased != capped)
	steps := []*Value{scores, capped, biased, weights} // in ONNX Runtime's order
	mode := e.node.Int("qk_matmul_output_mode", 0)
	if mode < 0 || mode >= int64(len(steps)) {
		e.fail("qk_matmul_output_mode %d is none of 0 to 3", mode)
	}
	shown := steps[mode]
	y := e.op(MatMul, nil, weights, vs)
	if qs.Shape.Rank() > 4 {
		y = e.reshape(y, q.Shape.With(3, v.Shape.At(3)))
		shown = e.reshape(shown, q.Shape.With(3, k.Shape.At(2)))
	}
	if rank == 3 {
		y = e.op(Transpose, attributes{intsOf("perm", 0, 2, 1, 3)}, y)
		y = e.reshape(y, extent.ShapeOf(q.Shape.At(0), q.Shape.At(2), q.Shape.At(1).Times(v.Shape.At(3))))
	}
	return []*Item{tensorItem(y), tensorItem(k), tensorItem(v), tensorItem(shown)}
}

// heads returns an operand as [batch, heads, positions, size]; with rank 3 it is [batch, positions, heads*size].
func (e *expansion) heads(v *Value, attribute string) *Value {
	if v.Shape.Rank() == 4 {
		return v
	}
	heads := e.node.Int(attribute, 0)
	if !hasHeads(v, heads) {
		e.fail("operand %v does not have %d heads (%s)", v.Type, heads, attribute)
	}
	v = e.reshape(v, ofHeads(v, heads))
	return e.op(Transpose, attributes{intsOf("perm", 0, 2, 1, 3)}, v)
}

// hasHeads reports whether a value of (batch, positions, features) has whole heads.
func hasHeads(v *Value, heads int64) bool {
	return v.Shape.Rank() == 3 && heads > 0 && v.Shape.At(2).Mod(extent.Of(heads)).Is(0)
}

// ofHeads returns the shape (batch, positions, heads, size).
func ofHeads(v *Value, heads int64) extent.Shape {
	return extent.ShapeOf(v.Shape.At(0), v.Shape.At(1), extent.Of(heads), v.Shape.At(2).Over(extent.Of(heads)))
}

// withPast prepends the positions of input k to those of v.
func (e *expansion) withPast(k int, v *Value) *Value {
	past := e.tensor(k)
	if past == nil {
		return v
	}
	return e.op(Concat, attributes{intOf("axis", 2)}, past, v)
}

func (e *expansion) checkHeads(q, k, v *Value) {
	a, b, c := q.Shape, k.Shape, v.Shape
	if a.Rank() != 4 || b.Rank() != 4 || c.Rank() != 4 || a.At(0) != b.At(0) || a.At(3) != b.At(3) ||
		!b.Slice(0, 3).Equal(c.Slice(0, 3)) || b.At(1).Min() < 1 || !a.At(1).Mod(b.At(1)).Is(0) {
		e.fail("query %v, key %v and value %v do not fit", a, b, c)
	}
}

// scores returns scale * q kᵀ [batch, heads, positions of q, positions of k].
func (e *expansion) scores(q, k *Value) *Value {
	last := int64(q.Shape.Rank() - 1)
	perm := []int64{0, 1, 2, 3, 4}[:last+1]
	perm[last-1], perm[last] = last, last-1
	scale := e.node.Float("scale", 1/math.Sqrt(float64(fixedAt(q, int(last)))))
	product := e.op(MatMul, nil, q, e.op(Transpose, attributes{intsOf("perm", perm...)}, k))
	return e.op(Mul, nil, product, e.scalar(q.DType, scale))
}

// capped bounds scores smoothly if the node has a soft cap.
func (e *expansion) capped(s *Value) *Value {
	limit := e.node.Float("softcap", 0)
	if limit <= 0 {
		return s
	}
	s = e.op(Tanh, nil, e.op(Div, nil, s, e.scalar(s.DType, limit)))
	return e.op(Mul, nil, s, e.scalar(s.DType, limit))
}

// grouped splits the heads of an operand [batch, heads, positions, size] into groups that share a head of keys:
// [batch, heads of keys, heads that share, positions, size].
func (e *expansion) grouped(v, keys *Value) *Value {
	return e.reshape(v, groupedShape(v.Shape, keys.Shape.At(1)))
}

func groupedShape(s extent.Shape, groups extent.Extent) extent.Shape {
	return extent.ShapeOf(s.At(0), groups, s.At(1).Over(groups), s.At(2), s.At(3))
}

// groupedBias reshapes a bias that broadcasts to [batch, heads, positions of q, positions of k] for grouped heads.
func (e *expansion) groupedBias(bias, q, k *Value) *Value {
	groups := k.Shape.At(1)
	if q.Shape.At(1) == groups || bias.Shape.Rank() < 3 {
		return bias
	}
	s := extent.Concat(ones(4-min(4, bias.Shape.Rank())), bias.Shape)
	if s.At(1).Is(1) {
		groups = extent.Of(1)
	}
	return e.reshape(bias, groupedShape(s, groups))
}

// weights returns the softmax of the scores, in the node's precision. Rows that are masked entirely are zero.
func (e *expansion) weights(scores, q, k *Value, masked bool) *Value {
	if code := e.node.Int("softmax_precision", 0); code != 0 {
		precision := onnx.FromDataType(int32(code))
		if precision == array.Invalid {
			e.fail("softmax_precision %d is not supported", code)
		}
		scores = e.cast(precision, scores)
	}
	attrs := attributes{intOf("axis", -1)}
	if masked {
		attrs = append(attrs, intOf(maskedAttribute, 1))
	}
	sink := e.tensor(sinkInput)
	if sink == nil {
		return e.cast(q.DType, e.op(Softmax, attrs, scores))
	}
	// The sink is one more score, without a value: it scales the weights of the others.
	scores, sink = e.cast(array.Float32, scores), e.groupedBias(e.cast(array.Float32, sink), q, k)
	total := e.op("ReduceLogSumExp", attributes{}, scores, e.ints(-1))
	share := e.op("Sigmoid", nil, e.op(Sub, nil, total, sink))
	return e.cast(q.DType, e.op(Mul, nil, e.op(Softmax, attrs, scores), share))
}

// attentionBias returns the term added to the scores, or nil. It is minus infinity for masked keys.
func (e *expansion) attentionBias(q, k *Value) *Value {
	var terms []*Value
	if mask := e.tensor(3); mask != nil {
		terms = append(terms, e.maskBias(mask, q.DType, k.Shape.At(2)))
	}
	lengths := e.tensor(6)
	if e.node.Int("is_causal", 0) != 0 {
		terms = append(terms, e.causalBias(q, k, lengths, e.node.Int(windowAttribute, 0)))
	}
	if lengths != nil {
		terms = append(terms, e.hidden(q.DType, e.op(Less, nil, e.placesOn(k, 2, 3), e.reshape(lengths, perBatch(q)))))
	}
	var bias *Value
	for _, term := range terms {
		if bias == nil {
			bias = term
			continue
		}
		bias = e.op(Add, nil, bias, term)
	}
	return bias
}

// perBatch returns the shape (batch, 1, 1, 1).
func perBatch(v *Value) extent.Shape { return extent.Concat(v.Shape.Slice(0, 1), ones(3)) }

// maskBias returns the bias for a mask, which may be shorter than the keys.
func (e *expansion) maskBias(mask *Value, d array.DType, keys extent.Extent) *Value {
	if mask.Shape.Rank() == 0 || mask.DType != array.Bool && mask.DType != d {
		e.fail("mask %v is not bool or %v", mask.Type, d)
	}
	if mask.DType == array.Bool {
		mask = e.hidden(d, mask)
	} else {
		// As in ONNX Runtime, the lowest finite number masks a key, too.
		masked := e.op(LessOrEqual, nil, mask, e.scalar(d, lowestFinite(d)))
		mask = e.op(Where, nil, masked, e.scalar(d, math.Inf(-1)), mask)
	}
	rank := mask.Shape.Rank()
	missing := keys.Minus(mask.Shape.At(rank - 1))
	if missing.Max() <= 0 {
		return mask
	}
	pads := make([]extent.Extent, 2*rank)
	pads[2*rank-1] = missing.Most(extent.Of(0))
	return e.op(Pad, nil, mask, e.extents(pads...), e.scalar(d, math.Inf(-1)))
}

func lowestFinite(d array.DType) float64 {
	switch d {
	case array.Float16:
		return -65504
	case array.BFloat16:
		return -0x1.fep127
	case array.Float64:
		return -math.MaxFloat64
	}
	return -math.MaxFloat32
}

// hidden is zero where visible holds and minus infinity elsewhere.
func (e *expansion) hidden(d array.DType, visible *Value) *Value {
	return e.op(Where, nil, visible, e.scalar(d, 0), e.scalar(d, math.Inf(-1)))
}

// causalBias masks the keys after a query's position. Queries are the last positions of the past and present keys,
// or of the valid keys if their lengths are given. A window limits a query to that many keys up to its position.
func (e *expansion) causalBias(q, k, lengths *Value, window int64) *Value {
	place, keys := e.placesOn(q, 2, 2), e.placesOn(k, 2, 3)
	switch past := e.tensor(4); {
	case past != nil && past.Shape.Rank() == 4:
		place = e.op(Add, nil, place, e.extent(past, 2))
	case lengths != nil:
		first := e.op(Sub, nil, e.reshape(lengths, perBatch(q)), e.extent(q, 2))
		place = e.op(Add, nil, place, first)
	}
	visible := e.op(LessOrEqual, nil, keys, place)
	if window > 0 {
		near := e.op(Less, nil, place, e.op(Add, nil, keys, e.ints(window)))
		visible = e.op(And, nil, visible, near)
	}
	return e.hidden(q.DType, visible)
}

// extent returns the extent of an axis as a list of one element. Unlike a number, it stays tied to the axis, which
// may be open.
func (e *expansion) extent(v *Value, axis int64) *Value {
	return e.op(Shape, attributes{intOf("start", axis), intOf("end", axis+1)}, v)
}

// placesOn returns the positions 0, 1, 2, ... of an axis of a value, on axis at of four.
func (e *expansion) placesOn(v *Value, axis, at int64) *Value {
	return e.reshape(e.op(Range, nil, e.ints(0), e.extent(v, axis), e.ints(1)), ones(4).With(int(at), v.Shape.At(int(axis))))
}

// positions returns 0, 1, 2, ... in a shape.
func (e *expansion) positions(shape extent.Shape) *Value {
	if shape.IsOpen() {
		return e.reshape(e.op(Range, nil, e.ints(0), e.extents(shape.Elements()), e.ints(1)), shape)
	}
	size := shape.Fixed()
	e.Budget().Bytes(16 * array.Elements(size))
	list := make([]int64, array.Elements(size))
	for k := range list {
		list[k] = int64(k)
	}
	return e.known(array.FromInt64(list, size...))
}

// rotaryEmbedding rotates pairs of elements of each head by position-dependent angles (Su et al. 2021), whose
// cosines and sines are inputs 1 and 2.
func (e *expansion) rotaryEmbedding() []*Item {
	x := e.tensor(0)
	shape := x.Shape
	axis := int64(1) // of the heads, in the cosines and sines
	if shape.Rank() == 3 {
		heads := e.node.Int("num_heads", 0)
		if !hasHeads(x, heads) {
			e.fail("input %v does not have %d heads (num_heads)", x.Type, heads)
		}
		axis = 2
		x = e.reshape(x, ofHeads(x, heads))
	}
	if x.Shape.Rank() != 4 {
		e.fail("input %v does not have rank 3 or 4", x.Type)
	}
	size := fixedAt(x, 3)
	turned := cmp.Or(e.node.Int("rotary_embedding_dim", 0), size)
	if turned < 2 || turned%2 != 0 || turned > size {
		e.fail("rotary_embedding_dim %d does not fit heads of %d", turned, size)
	}
	y := e.rotate(e.slice(x, 3, 0, turned), e.angles(1, axis), e.angles(2, axis))
	if turned < size {
		y = e.op(Concat, attributes{intOf("axis", 3)}, y, e.slice(x, 3, turned, size))
	}
	return only(e.reshape(y, shape))
}

// angles returns input k [batch, positions, pairs], indexed by the positions of input 3 if given, with an axis for
// heads.
func (e *expansion) angles(k int, axis int64) *Value {
	v := e.tensor(k)
	if places := e.tensor(3); places != nil {
		v = e.op(Gather, nil, v, places)
	}
	return e.op(Unsqueeze, nil, v, e.ints(axis))
}

// rotate forms pairs from the two halves of the last axis or, if interleaved, from neighbours.
func (e *expansion) rotate(x, cos, sin *Value) *Value {
	shape, split := x.Shape, int64(3)
	part := shape.With(3, extent.Of(fixedAt(x, 3)/2))
	if e.node.Int("interleaved", 0) != 0 {
		split = 4
	}
	x = e.reshape(x, extent.ShapeOf(slices.Insert(slices.Clone(part.Extents()), int(split), extent.Of(2))...))
	a, b := e.reshape(e.slice(x, split, 0, 1), part), e.reshape(e.slice(x, split, 1, 2), part)
	mul := func(v, by *Value) *Value { return e.op(Mul, nil, v, by) }
	first := e.op(Sub, nil, mul(a, cos), mul(b, sin))
	second := e.op(Add, nil, mul(a, sin), mul(b, cos))
	axis := e.ints(split)
	joined := e.op(Concat, attributes{intOf("axis", split)}, e.op(Unsqueeze, nil, first, axis), e.op(Unsqueeze, nil, second, axis))
	return e.reshape(joined, shape)
}
