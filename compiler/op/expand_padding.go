package op

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
)

// visibleKeys converts a padding mask of ONNX Runtime to a bool that broadcasts to (batch, heads, queries, keys),
// past keys included. A mask has an element per key, (batch, keys), or per query and key, (batch, queries, keys),
// zero for excluded keys; or it holds the number of keys, (batch), or their ends and then starts, (2*batch). It
// returns nil without a mask, and for one with equal elements for all keys.
func (e *expansion) visibleKeys(mask, q, k, pastKeys *Value) *Value {
	if mask == nil || e.failed() {
		return nil
	}
	batch, queries := q.Shape.Fixed()[0], q.Shape.Fixed()[q.Shape.Rank()-2]
	keys := k.Shape.Fixed()[k.Shape.Rank()-2]
	if pastKeys != nil {
		keys += pastKeys.Shape.Fixed()[2]
	}
	is := func(shape ...int64) bool { return slices.Equal(mask.Shape.Fixed(), shape) }
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

// keyPlaces returns the positions 0, 1, 2, ... of keys, those of the past first, as (1, 1, 1, keys).
func (e *expansion) keyPlaces(k, pastKeys *Value, keys int64) *Value {
	count := e.extent(k, int64(k.Shape.Rank()-2))
	if pastKeys != nil {
		count = e.op(Add, nil, count, e.extent(pastKeys, 2))
	}
	return e.reshape(e.op(Range, nil, e.ints(0), count, e.ints(1)), 1, 1, 1, keys)
}

// perSequence returns one number per sequence as (batch, 1, 1, 1).
func (e *expansion) perSequence(v *Value) *Value {
	if e.failed() {
		return nil
	}
	return e.reshape(e.cast(array.Int64, v), v.Shape.Fixed()[0], 1, 1, 1)
}
