package op

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// runtimeDomain contains ONNX Runtime's own operators, which exporters of language models write.
const runtimeDomain = "com.microsoft"

// runtimeDefs are in ONNX Runtime's domain; the first is also in ONNX's, where some exporters write it.
var runtimeDefs = []Def{
	def("SimplifiedLayerNormalization", 2, 2, (*expansion).simplifiedLayerNormalization),
	ofRuntime(def("SimplifiedLayerNormalization", 2, 2, (*expansion).simplifiedLayerNormalization)),
	ofRuntime(def("SkipSimplifiedLayerNormalization", 3, 4, (*expansion).skipSimplifiedLayerNormalization)),
	ofRuntime(def("RotaryEmbedding", 4, 4, (*expansion).cachedRotaryEmbedding)),
	ofRuntime(def("GroupQueryAttention", 1, 12, (*expansion).groupQueryAttention)),
	ofRuntime(def("MultiHeadAttention", 1, 10, (*expansion).multiHeadAttention)),
	ofRuntime(def("Attention", 2, 7, (*expansion).projectedAttention)),
	ofRuntime(def("QAttention", 5, 9, (*expansion).qAttention)),
	ofRuntime(def("MatMulNBits", 3, 6, (*expansion).matMulNBits)),
}

func ofRuntime(d Def) Def {
	d.Domain = runtimeDomain
	return d
}

// as expands another operator, with the given attributes and inputs; nil inputs are omitted.
func (e *expansion) as(f func(*expansion) []*Item, attrs attributes, in ...*Value) []*Item {
	e.check()
	n := Node{Name: e.node.Name, Op: e.node.Op, Opset: expandedOpset, Attrs: map[string]*onnx.Attribute{}, Outputs: e.node.Outputs}
	for _, a := range attrs {
		n.Attrs[a.Name] = a
	}
	other := &expansion{Builder: e.Builder, node: &n}
	for _, v := range in {
		other.in = append(other.in, tensorItem(v))
	}
	out := f(other)
	other.check()
	return out
}

// simplifiedLayerNormalization is an RMSNormalization.
func (e *expansion) simplifiedLayerNormalization() []*Item {
	if e.wants(1) {
		e.fail("output 1, which is for training, is not supported: export the model for inference")
	}
	return only(e.rootMeanSquare(e.tensor(0), e.tensor(1), e.node.Int("axis", -1)))
}

func (e *expansion) rootMeanSquare(x, scale *Value, axis int64) *Value {
	return e.op(RMSNormalization, attributes{intOf("axis", axis), floatOf("epsilon", e.node.Float("epsilon", 1e-5))}, x, scale)
}

// skipSimplifiedLayerNormalization normalises the sum of inputs 0, 1 and 3, which is output 3.
func (e *expansion) skipSimplifiedLayerNormalization() []*Item {
	if e.wants(1) || e.wants(2) {
		e.fail("outputs 1 and 2, which are for training, are not supported: export the model for inference")
	}
	sum := e.op(Add, nil, e.tensor(0), e.tensor(1))
	if bias := e.tensor(3); bias != nil {
		sum = e.op(Add, nil, sum, bias)
	}
	return []*Item{tensorItem(e.rootMeanSquare(sum, e.tensor(2), -1)), nil, nil, tensorItem(sum)}
}

// cachedRotaryEmbedding is a RotaryEmbedding whose positions are input 1: all of them, or the first.
func (e *expansion) cachedRotaryEmbedding() []*Item {
	x, places, cosines, sines := e.tensor(0), e.tensor(1), e.tensor(2), e.tensor(3)
	if scale := e.node.Float("scale", 1); scale != 1 || e.node.Int("is_packed_batching", 0) != 0 {
		e.fail("a scale other than 1 and packed batching are not supported")
	}
	if cosines.Shape.Rank() != 2 || x.Shape.Rank() != 3 && x.Shape.Rank() != 4 {
		e.fail("input %v or cosines %v have a wrong number of axes", x.Type, cosines.Type)
	}
	positions := x.Shape.At(x.Shape.Rank() - 2)
	if places.Shape.Elements().Is(1) {
		places = e.op(Add, nil, e.reshape(places, ones(2)), e.repeated(x.Shape.At(0), positions))
	}
	attrs := attributes{intOf("interleaved", e.node.Int("interleaved", 0)), intOf("rotary_embedding_dim", e.node.Int("rotary_embedding_dim", 0))}
	if x.Shape.Rank() == 3 {
		attrs = append(attrs, intOf("num_heads", e.rotatedHeads(x, cosines)))
	}
	return e.as((*expansion).rotaryEmbedding, attrs, x, cosines, sines, places)
}

// rotatedHeads returns the number of heads of (batch, positions, heads*size), derived from the angles if not given.
func (e *expansion) rotatedHeads(x, cosines *Value) int64 {
	heads := e.node.Int("num_heads", 0)
	if pairs := fixedAt(cosines, 1); heads == 0 && pairs > 0 {
		heads = fixedAt(x, 2) / (2 * pairs)
	}
	return heads
}

// repeated returns the positions 0, 1, 2, ... of each sequence of a batch.
func (e *expansion) repeated(batch, positions extent.Extent) *Value {
	return e.expand(e.positions(extent.ShapeOf(extent.Of(1), positions)), extent.ShapeOf(batch, positions))
}

// groupQueryAttention is causal attention whose groups of query heads share keys and values. Inputs 3 and 4 are
// keys and values of the past, 7 and 8 cosines and sines of rotations, by the positions of input 9 or by those
// after the past, and 10 is added to the scores. Outputs 1 and 2 are keys, rotated, and values, those of the past
// in front: (batch, heads, positions, size).
//
// Input 5 is the number of keys of each sequence of the batch, less one, and input 6 that of the longest, which
// follows from the shapes. Without a past, shorter sequences end with padding, whose results are undefined. With a
// past, all must have one length. Both inputs are checked if known, and otherwise ignored.
func (e *expansion) groupQueryAttention() []*Item {
	heads, groups := e.node.Int("num_heads", 0), e.node.Int("kv_num_heads", 0)
	q, k, v := e.queryKeyValue(heads, groups)
	sink := e.attentionSink(heads)
	e.checkPast(q.Shape.At(1))
	places := e.placesBehindPast(q)
	q, k = e.turned(q, heads, places), e.turned(k, groups, places)
	attrs := attributes{intOf("q_num_heads", heads), intOf("kv_num_heads", groups), intOf("is_causal", 1), floatOf("softcap", e.node.Float("softcap", 0))}
	if scale := e.node.Float("scale", 0); scale != 0 {
		attrs = append(attrs, floatOf("scale", scale))
	}
	if window := e.node.Int("local_window_size", -1); window > 0 {
		attrs = append(attrs, intOf(windowAttribute, window))
	}
	return e.as((*expansion).attention, attrs, q, k, v, e.tensor(10), e.tensor(3), e.tensor(4), nil, sink)[:3]
}

// placesBehindPast returns the positions of the tokens of x (batch, positions, features): (batch or 1, positions).
func (e *expansion) placesBehindPast(x *Value) *Value {
	past := e.tensor(3)
	switch places := e.tensor(9); {
	case places != nil:
		return places
	case past == nil || e.node.Int("do_rotary", 0) == 0:
		return e.repeated(x.Shape.At(0), x.Shape.At(1))
	}
	first := e.reshape(e.placesOn(x, 1, 3), extent.ShapeOf(extent.Of(1), x.Shape.At(1)))
	return e.op(Add, nil, first, e.extent(past, 2))
}

// queryKeyValue returns inputs 0 to 2, or the parts of input 0 if the others are omitted.
func (e *expansion) queryKeyValue(heads, groups int64) (q, k, v *Value) {
	q, k, v = e.tensor(0), e.tensor(1), e.tensor(2)
	if heads < 1 || groups < 1 || q.Shape.Rank() != 3 {
		e.fail("query %v does not fit %d heads that share %d keys and values", q.Type, heads, groups)
	}
	if k != nil || v != nil {
		if k == nil || v == nil {
			e.fail("key or value is missing")
		}
		return q, k, v
	}
	features := fixedAt(q, 2)
	if features%(heads+2*groups) != 0 {
		e.fail("packed query, key and value %v do not fit %d heads that share %d keys and values", q.Type, heads, groups)
	}
	size := features / (heads + 2*groups)
	part := func(from, to int64) *Value { return e.slice(q, 2, from*size, to*size) }
	return part(0, heads), part(heads, heads+groups), part(heads+groups, heads+2*groups)
}

// attentionSink returns the score that takes part in each softmax besides those of keys: input 11, one for each head,
// or zero with a smooth softmax. It is nil for a plain softmax.
func (e *expansion) attentionSink(heads int64) *Value {
	sink := e.tensor(11)
	switch {
	case e.wants(3):
		e.fail("output 3, the scores, is not supported")
	case sink != nil && !sink.Shape.Elements().Is(heads):
		e.fail("input 11, the score of a sink, %v is not one for each of %d heads", sink.Type, heads)
	case sink != nil:
		return e.reshape(sink, extent.Fixed(1, heads, 1, 1))
	case e.node.Int("smooth_softmax", 0) > 0:
		return e.known(array.New(array.Float32, 1, 1, 1, 1))
	}
	return nil
}

// checkPast checks the past, if any, and the known lengths, against the number of new tokens.
func (e *expansion) checkPast(tokens extent.Extent) {
	keys, values := e.tensor(3), e.tensor(4)
	all := tokens
	switch {
	case keys != nil && values != nil && keys.Shape.Rank() == 4 && values.Shape.Rank() == 4:
		all = all.Plus(keys.Shape.At(2))
	case keys != nil || values != nil:
		e.fail("the keys and values of the past do not have 4 axes, or one of them is missing")
	}
	if total, known := e.knownInts(6); known && (len(total) != 1 || total[0] != all) {
		e.fail("input 6, how many tokens there are, is not %v, those of the past and the new ones: a past with room for more is not supported", all)
	}
	lengths, known := e.knownInts(5)
	if keys != nil && e.tensor(5) != nil && !known && keys.Shape.At(0).Max() > 1 {
		e.fail("input 5, the lengths of %v sequences, is computed, and sequences after a past must have equal lengths: fix the batch to 1 by --shape", keys.Shape.At(0))
	}
	for k, n := range lengths {
		if length := n.Plus(extent.Of(1)); keys != nil && length != all {
			e.fail("sequence %d has %v tokens where the past and the new ones are %v: sequences after a past must have equal lengths", k, length, all)
		}
	}
}

// knownInts returns the integers of input k, which may depend on open extents; known is false if they depend on data.
func (e *expansion) knownInts(k int) (list []extent.Extent, known bool) {
	v := e.tensor(k)
	if v == nil || v.DType.IsFloat() || v.Const == nil && v.Numbers == nil {
		return nil, false
	}
	n := Node{In: []Value{*v}}
	return n.KnownExtents(0, "list"), true
}

// turned rotates queries or keys by the angles of their positions, if the node does so.
func (e *expansion) turned(x *Value, heads int64, places *Value) *Value {
	if e.node.Int("do_rotary", 0) == 0 {
		return x
	}
	cosines, sines := e.tensor(7), e.tensor(8)
	if cosines == nil || sines == nil {
		e.fail("do_rotary is set, and cosines or sines are missing")
	}
	attrs := attributes{intOf("num_heads", heads), intOf("interleaved", e.node.Int("rotary_interleaved", 0))}
	if turned := 2 * fixedAt(cosines, cosines.Shape.Rank()-1); turned != fixedAt(x, 2)/heads {
		attrs = append(attrs, intOf("rotary_embedding_dim", turned))
	}
	out := e.as((*expansion).rotaryEmbedding, attrs, x, cosines, sines, places)
	return out[0].Tensor
}
