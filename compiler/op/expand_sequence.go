package op

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// sequenceDefs operate on sequences and optionals, whose lengths and tensors are known when the model is read.
var sequenceDefs = []Def{
	def("SequenceEmpty", 0, 0, func(e *expansion) []*Item { return e.onlySequence(nil) }),
	def("SequenceConstruct", 0, -1, func(e *expansion) []*Item { return e.onlySequence(e.tensors()) }),
	def("SequenceAt", 2, 2, (*expansion).sequenceAt),
	def("SequenceLength", 1, 1, (*expansion).sequenceLength),
	def("SequenceInsert", 2, 3, (*expansion).sequenceInsert),
	def("SequenceErase", 1, 2, (*expansion).sequenceErase),
	def("SequenceMap", 1, -1, (*expansion).sequenceMap),
	def("SplitToSequence", 1, 2, (*expansion).splitToSequence),
	def("ConcatFromSequence", 1, 1, (*expansion).concatFromSequence),
	def("Optional", 0, 1, (*expansion).optional),
	def("OptionalHasElement", 0, 1, (*expansion).optionalHasElement),
	def("OptionalGetElement", 1, 1, (*expansion).optionalGetElement),
	def("Identity", 1, 1, func(e *expansion) []*Item { return []*Item{e.in[0]} }),
}

// onlySequence returns a sequence as the only output, and charges for its list.
func (e *expansion) onlySequence(elements []*Value) []*Item {
	e.Budget().Bytes(8 * int64(len(elements)))
	return []*Item{{Sequence: &Sequence{Elements: elements}}}
}

// elements returns the elements of input k, which must be a sequence.
func (e *expansion) elements(k int) []*Value {
	if e.in[k] == nil || e.in[k].Sequence == nil {
		e.fail("input %d is not a sequence", k)
	}
	return e.in[k].Sequence.Elements
}

// position returns input k as a position among count, possibly counted from the end.
func (e *expansion) position(k, count int) int {
	v := e.tensor(k)
	if v.Const == nil || v.Const.Len() != 1 || !v.DType.IsInt() {
		e.fail("input %d (position) is not constant: sequences must be known when the model is read", k)
	}
	at := v.Const.Int(0)
	if at < 0 {
		at += int64(count)
	}
	if at < 0 || at >= int64(count) {
		e.fail("position %d is outside a sequence with %d places", v.Const.Int(0), count)
	}
	return int(at)
}

func (e *expansion) sequenceAt() []*Item {
	elements := e.elements(0)
	at := e.position(1, len(elements))
	return only(elements[at])
}

func (e *expansion) sequenceLength() []*Item {
	return only(e.known(array.FromInt64([]int64{int64(len(e.elements(0)))})))
}

func (e *expansion) sequenceInsert() []*Item {
	elements, v := e.elements(0), e.tensor(1)
	at := len(elements)
	if len(e.in) > 2 {
		at = e.position(2, len(elements)+1)
		if p := e.tensor(2); p.Const.Int(0) < 0 {
			at-- // from the end means from the last element
		}
	}
	if at < 0 {
		e.fail("the position is outside a sequence with %d elements", len(elements))
	}
	return e.onlySequence(slices.Insert(slices.Clone(elements), at, v))
}

func (e *expansion) sequenceErase() []*Item {
	elements := e.elements(0)
	at := len(elements) - 1
	if len(e.in) > 1 {
		at = e.position(1, len(elements))
	}
	if at < 0 {
		e.fail("the sequence has no elements")
	}
	return e.onlySequence(slices.Delete(slices.Clone(elements), at, at+1))
}

// sequenceMap applies a graph to the elements at each position of its sequences; tensor inputs are the same for all.
func (e *expansion) sequenceMap() []*Item {
	g := e.node.Graph("body")
	count := len(e.elements(0))
	if e.failed() {
		return nil
	}
	outs := make([]*Item, len(g.Outputs))
	for k := range outs {
		outs[k] = e.onlySequence(nil)[0]
	}
	for t := range count {
		arguments := slices.Clone(e.in)
		for k, it := range e.in {
			if it == nil || it.Sequence == nil {
				continue
			}
			if len(it.Sequence.Elements) != count {
				e.fail("input %d has %d elements, want %d", k, len(it.Sequence.Elements), count)
			}
			arguments[k] = tensorItem(it.Sequence.Elements[t])
		}
		results := e.body(g, arguments)
		for k, it := range results {
			if it.Tensor == nil {
				e.fail("output %q of the body is not a tensor", g.Outputs[k].Name)
			}
			outs[k].Sequence.Elements = append(outs[k].Sequence.Elements, it.Tensor)
		}
	}
	return outs
}

// splitToSequence splits an axis into single positions, equal parts, or parts of given lengths.
func (e *expansion) splitToSequence() []*Item {
	v := e.tensor(0)
	rank := int64(v.Shape.Rank())
	axis := e.node.Int("axis", 0)
	if axis < 0 {
		axis += rank
	}
	if axis < 0 || axis >= rank {
		e.fail("axis %d is outside %v", axis, v.Type)
	}
	lengths := e.splitLengths(v.Shape.At(int(axis)))
	keep := e.node.Int("keepdims", 1) != 0 || len(e.in) > 1
	var parts []*Value
	begin := extent.Of(0)
	for _, length := range lengths {
		end := begin.Plus(length)
		part := e.span(v, axis, begin, end)
		if !keep {
			part = e.op(Squeeze, nil, part, e.ints(axis))
		}
		parts, begin = append(parts, part), end
	}
	return e.onlySequence(parts)
}

// splitLengths returns the lengths of the parts of an axis.
func (e *expansion) splitLengths(size extent.Extent) []extent.Extent {
	split, part := e.tensor(1), extent.Of(1)
	if split != nil {
		list, known := e.knownInts(1)
		if !known || !split.DType.IsInt() {
			e.fail("input 1 (split) is not constant: sequences must be known when the model is read")
		}
		if split.Shape.Rank() == 1 {
			return e.givenLengths(list, size)
		}
		if len(list) != 1 {
			e.fail("input 1 (split) is %v and neither a length nor a list of them", split.Type)
		}
		part = list[0]
	}
	if part.Min() < 1 || size.Max()/part.Min() > MaxNodes {
		e.fail("an axis of %v cannot be split in parts of %v", size, part)
	}
	count, ok := size.CeilOver(part).Const()
	if !ok {
		e.fail("how many parts of %v an axis of %v has depends on an open extent: fix it by --shape", part, size)
	}
	var lengths []extent.Extent
	for k := range count {
		lengths = append(lengths, part.Least(size.Minus(part.Times(extent.Of(k)))))
	}
	return lengths
}

func (e *expansion) givenLengths(list []extent.Extent, size extent.Extent) []extent.Extent {
	rest := size
	for _, length := range list {
		if rest = rest.Minus(length); length.Min() < 0 || rest.Min() < 0 {
			e.fail("parts of an axis of %v have the length %v", size, length)
		}
	}
	if !rest.Is(0) {
		e.fail("parts of an axis of %v leave %v", size, rest)
	}
	return list
}

// concatFromSequence joins the elements along an axis, or along a new one.
func (e *expansion) concatFromSequence() []*Item {
	parts := slices.Clone(e.elements(0))
	if e.node.Attrs["axis"] == nil {
		e.fail("attribute \"axis\" is missing")
	}
	if len(parts) == 0 {
		e.fail("the sequence has no elements")
	}
	axis := e.node.Int("axis", 0)
	if e.node.Int("new_axis", 0) != 0 {
		for k, v := range parts {
			parts[k] = e.op(Unsqueeze, nil, v, e.ints(axis))
		}
	}
	return only(e.op(Concat, attributes{intOf("axis", axis)}, parts...))
}

func (e *expansion) optional() []*Item {
	if len(e.in) == 0 || e.in[0] == nil {
		return []*Item{{}}
	}
	return []*Item{e.in[0]}
}

func isEmpty(it *Item) bool { return it == nil || it.Tensor == nil && it.Sequence == nil }

func (e *expansion) optionalHasElement() []*Item {
	return only(e.truthOf(len(e.in) > 0 && !isEmpty(e.in[0])))
}

func (e *expansion) optionalGetElement() []*Item {
	if isEmpty(e.in[0]) {
		e.fail("the optional has no element")
	}
	return []*Item{e.in[0]}
}
