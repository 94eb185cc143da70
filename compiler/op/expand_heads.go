package op

import (
	"github.com/tilth-dev/tilth/compiler/extent"
)

// multiHeadAttention is attention with queries, keys and values of (batch, positions, heads*size), to which input 3
// is added; keys and values may also be (batch, heads, positions, size). Inputs 4 and 5 are a padding mask and a
// bias of the scores, 6 and 7 a past. Outputs 1 and 2 are keys and values with those of the past in front.
func (e *expansion) multiHeadAttention() []*Item {
	q, k, v := e.tensor(0), e.tensor(1), e.tensor(2)
	switch {
	case q.Shape.Rank() != 3 || k == nil || v == nil:
		e.fail("packed queries, keys and values are not supported: they must be inputs of their own, the query of 3 axes")
	case e.tensor(9) != nil || e.wants(3):
		e.fail("input 9, for beams, and output 3, the scores, are not supported")
	}
	if bias := e.tensor(3); bias != nil {
		if k.Shape.Rank() != 3 || v.Shape.Rank() != 3 || bias.Shape.Rank() != 1 || fixedAt(bias, 0) != fixedAt(q, 2)+fixedAt(k, 2)+fixedAt(v, 2) {
			e.fail("bias %v does not fit query %v, key %v and value %v", bias.Type, q.Type, k.Type, v.Type)
		}
		at := int64(0)
		for _, x := range []**Value{&q, &k, &v} {
			width := fixedAt(*x, 2)
			*x, at = e.op(Add, nil, *x, e.slice(bias, 0, at, at+width)), at+width
		}
	}
	return e.maskedHeads(q, k, v, e.tensor(6), e.tensor(7), e.tensor(4), e.tensor(5))
}

// maskedHeads is attention with the masks of ONNX Runtime: a padding mask excludes keys, and bias is added to the
// scores.
func (e *expansion) maskedHeads(q, k, v, pastKeys, pastValues, padding, bias *Value) []*Item {
	if padding = e.visibleKeys(padding, q, k, pastKeys); padding != nil {
		hidden := e.scalar(q.DType, e.node.Float("mask_filter_value", -10000))
		padding = e.op(Where, nil, padding, e.scalar(q.DType, 0), hidden)
		if bias != nil {
			padding = e.op(Add, nil, bias, padding)
		}
		bias = padding
	}
	heads := e.node.Int("num_heads", 0)
	attrs := attributes{intOf("q_num_heads", heads), intOf("kv_num_heads", heads), intOf("is_causal", e.node.Int("unidirectional", 0))}
	if scale := e.node.Float("scale", 0); scale != 0 {
		attrs = append(attrs, floatOf("scale", scale))
	}
	return e.as((*expansion).attention, attrs, q, k, v, bias, pastKeys, pastValues)[:3]
}

// projectedAttention is attention with the projections of input 0 to queries, keys and values, by the weights and
// biases in inputs 1 and 2. Input 3 is a padding mask, 4 a past of (2, batch, heads, positions, size), which output
// 1 continues, and 5 a bias of the scores.
func (e *expansion) projectedAttention() []*Item {
	e.checkProjected()
	all := e.op(MatMul, nil, e.tensor(0), e.tensor(1))
	if bias := e.tensor(2); bias != nil {
		all = e.op(Add, nil, all, bias)
	}
	return e.attendProjected(all, e.tensor(4), e.tensor(3), e.tensor(5))
}

// qAttention is projected attention by an integer product: inputs 3 and 4 are the scales of input and weights, 6
// and 7 their zero points, 2 is the bias, 5 a padding mask and 8 a past.
func (e *expansion) qAttention() []*Item {
	e.checkProjected()
	x, xZero, w, wZero := e.tensor(0), e.oneForAll(e.tensor(6)), e.tensor(1), e.oneOrColumns(e.tensor(7))
	sums := e.integerMatMul(x, xZero, w, wZero)
	factor := e.op(Mul, nil, e.oneForAll(e.tensor(3)), e.oneOrColumns(e.tensor(4)))
	all := e.scaled(sums, factor, e.tensor(2))
	return e.attendProjected(all[0].Tensor, e.tensor(8), e.tensor(5), nil)
}

// oneOrColumns returns a scale or zero point without axes if it has one element; others have one per column.
func (e *expansion) oneOrColumns(v *Value) *Value {
	if v == nil || !v.Shape.Elements().Is(1) {
		return v
	}
	return e.reshape(v, extent.Fixed())
}

// checkProjected fails unless inputs 0 and 1 are the data and weights of the projections.
func (e *expansion) checkProjected() {
	x, weights := e.tensor(0), e.tensor(1)
	if x.Shape.Rank() != 3 || weights.Shape.Rank() != 2 || e.node.Int("do_rotary", 0) != 0 || e.node.Int("past_present_share_buffer", 0) != 0 {
		e.fail("input %v or weights %v have a wrong number of axes, or rotations or a past with room for more are asked for, which is not supported", x.Type, weights.Type)
	}
}

// attendProjected is attention with adjacent queries, keys and values in all, (batch, positions, features).
func (e *expansion) attendProjected(all, past, padding, bias *Value) []*Item {
	features := fixedAt(all, 2)
	sizes := e.node.Ints("qkv_hidden_sizes", []int64{features / 3, features / 3, features / 3})
	if len(sizes) != 3 || sizes[0]+sizes[1]+sizes[2] != features {
		e.fail("queries, keys and values of %d features are not the %d of the weights", sizes, features)
	}
	part := func(from, size int64) *Value { return e.slice(all, 2, from, from+size) }
	var pastKeys, pastValues *Value
	if past != nil {
		if past.Shape.Rank() != 5 || !past.Shape.At(0).Is(2) {
			e.fail("past %v is not (2, batch, heads, positions, size)", past.Type)
		}
		pastKeys = e.reshape(e.slice(past, 0, 0, 1), past.Shape.Slice(1, 5))
		pastValues = e.reshape(e.slice(past, 0, 1, 2), past.Shape.Slice(1, 5))
	}
	out := e.maskedHeads(part(0, sizes[0]), part(sizes[0], sizes[1]), part(sizes[0]+sizes[1], sizes[2]), pastKeys, pastValues, padding, bias)
	if !e.wants(1) {
		return out
	}
	stacked := func(k int) *Value { return e.op(Unsqueeze, nil, out[k].Tensor, e.ints(0)) }
	return []*Item{out[0], tensorItem(e.op(Concat, attributes{intOf("axis", 0)}, stacked(1), stacked(2)))}
}
