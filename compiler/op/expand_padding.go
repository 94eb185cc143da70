package op

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// visibleKeys converts a padding mask of ONNX Runtime to a bool that broadcasts to (batch, heads, queries, keys),
// past keys included. A mask has an element per key, (batch, keys), or per query and key, (batch, queries, keys),
// zero for excluded keys; or it holds the number of keys, (batch), or their ends and then starts, (2*batch). It
// returns nil without a mask, and for one with equal elements for all keys.
func (e *expansion) visibleKeys(mask, q, k, pastKeys *Value) *Value {
	if mask == nil {
		return nil
	}
	batch, queries, one := q.Shape.At(0), q.Shape.At(q.Shape.Rank()-2), extent.Of(1)
	keys := k.Shape.At(k.Shape.Rank() - 2)
	if pastKeys != nil {
		keys = keys.Plus(pastKeys.Shape.At(2))
	}
	is := func(shape ...extent.Extent) bool { return mask.Shape.Equal(extent.ShapeOf(shape...)) }
	switch {
	case is(batch, keys):
		return e.op(Unsqueeze, nil, e.cast(array.Bool, mask), e.ints(1, 2))
	case is(batch, one), is(one, one):
		return nil
	case is(batch, queries, keys):
		return e.op(Unsqueeze, nil, e.cast(array.Bool, mask), e.ints(1))
	case is(batch):
		return e.op(Less, nil, e.keyPlaces(k, pastKeys, keys), e.perSequence(mask))
	case is(batch.Plus(batch)):
		places := e.keyPlaces(k, pastKeys, keys)
		before := e.op(Less, nil, places, e.perSequence(e.span(mask, 0, extent.Of(0), batch)))
		return e.op(And, nil, before, e.op(LessOrEqual, nil, e.perSequence(e.span(mask, 0, batch, batch.Plus(batch))), places))
	}
	e.fail("mask %v is not one of %v sequences with %v queries and %v keys, nor how many keys each sequence has", mask.Type, batch, queries, keys)
	return nil
}

// keyPlaces returns the positions 0, 1, 2, ... of keys, those of the past first, as (1, 1, 1, keys).
func (e *expansion) keyPlaces(k, pastKeys *Value, keys extent.Extent) *Value {
	count := e.extent(k, int64(k.Shape.Rank()-2))
	if pastKeys != nil {
		count = e.op(Add, nil, count, e.extent(pastKeys, 2))
	}
	return e.reshape(e.op(Range, nil, e.ints(0), count, e.ints(1)), ones(4).With(3, keys))
}

// perSequence returns one number per sequence as (batch, 1, 1, 1).
func (e *expansion) perSequence(v *Value) *Value {
	return e.reshape(e.cast(array.Int64, v), perBatch(v))
}
