package op

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
)

// visibleKeys tells by a padding mask of ONNX Runtime which keys queries see: a bool that broadcasts to (batch, heads,
// queries, keys), those of the past included. A mask is one element for each key, (batch, keys), or for each query and
// key, (batch, queries, keys), zero where a key is left out; or how many keys there are, (batch), or the ends and then
// the starts of them, (2*batch). It is nil for no mask, and for one that has the same element for all keys.
func (e *expansion) visibleKeys(mask, q, k, pastKeys *Value) *Value {
	if mask == nil || e.failed() {
		return nil
	}
	batch, queries := q.Shape[0], q.Shape[len(q.Shape)-2]
	keys := k.Shape[len(k.Shape)-2]
	if pastKeys != nil {
		keys += pastKeys.Shape[2]
	}
	is := func(shape ...int64) bool { return slices.Equal(mask.Shape, shape) }
	switch {
	case is(batch, keys):
		return e.op(Unsqueeze, nil, e.cast(array.Bool, mask), e.ints(1, 2))
	case is(batch, 1), is(1, 1):
		return nil
	case is(batch, queries, keys):
		return e.op(Unsqueeze, nil, e.cast(array.Bool, mask), e.ints(1))
	case is(batch):
		return e.op(Less, nil, e.keyPlaces(k, pastKeys, keys), e.perSequence(mask))
	case is(2 * batch):
		places := e.keyPlaces(k, pastKeys, keys)
		before := e.op(Less, nil, places, e.perSequence(e.slice(mask, 0, 0, batch)))
		return e.op(And, nil, before, e.op(LessOrEqual, nil, e.perSequence(e.slice(mask, 0, batch, 2*batch)), places))
	}
	e.fail("mask %v is not one of %d sequences with %d queries and %d keys, nor how many keys each sequence has", mask.Type, batch, queries, keys)
	return nil
}

// keyPlaces are the places 0, 1, 2, ... of keys, those of the past first, as (1, 1, 1, keys).
func (e *expansion) keyPlaces(k, pastKeys *Value, keys int64) *Value {
	count := e.extent(k, int64(len(k.Shape)-2))
	if pastKeys != nil {
		count = e.op(Add, nil, count, e.extent(pastKeys, 2))
	}
	return e.reshape(e.op(Range, nil, e.ints(0), count, e.ints(1)), 1, 1, 1, keys)
}

// perSequence is one number of each sequence as (batch, 1, 1, 1).
func (e *expansion) perSequence(v *Value) *Value {
	if e.failed() {
		return nil
	}
	return e.reshape(e.cast(array.Int64, v), v.Shape[0], 1, 1, 1)
}
