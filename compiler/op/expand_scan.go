package op

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// scans collects the elements of all iterations for each scan output.
type scans [][]*Item

// newScans returns nil if count is negative.
func newScans(count int) scans {
	if count < 0 {
		return nil
	}
	return make(scans, count)
}

func (s scans) add(elements []*Item) {
	for k := range s {
		s[k] = append(s[k], elements[k])
	}
}

// stack joins the elements of each scan output along a new axis. Without iterations it takes the shape from the
// graph's output declaration.
func (e *expansion) stack(s scans, infos []*onnx.ValueInfo, axis int64) []*Item {
	outs := make([]*Item, len(s))
	for k, elements := range s {
		if len(elements) == 0 {
			outs[k] = e.emptyScan(infos[k], axis)
			continue
		}
		parts := make([]*Value, len(elements))
		for t, it := range elements {
			if it.Tensor == nil {
				e.fail("scan output %q is not a tensor", infos[k].Name)
				return outs
			}
			parts[t] = e.op(Unsqueeze, nil, it.Tensor, e.ints(axis))
		}
		outs[k] = tensorItem(e.op(Concat, attributes{intOf("axis", axis)}, parts...))
	}
	return outs
}

func (e *expansion) emptyScan(info *onnx.ValueInfo, axis int64) *Item {
	if info.DType == array.Invalid || !info.HasShape || axis != 0 {
		e.fail("no iterations, and no shape for scan output %q: store the shapes in the model", info.Name)
	}
	shape := []int64{0}
	for _, d := range info.Shape {
		shape = append(shape, max(0, d.Value))
	}
	return tensorItem(e.known(array.New(info.DType, shape...)))
}

// scanShape describes how a Scan iterates over its operands.
type scanShape struct {
	states, inputs, outputs                               int
	inputAxes, outputAxes, inputDirections, outDirections []int64
}

// scan iterates over the extent of its inputs.
func (e *expansion) scan() []*Item {
	g := e.node.Graph("body")
	e.check()
	if e.node.Opset < 9 {
		return e.batchedScan(g)
	}
	s, in := e.scanShape(g, e.in), e.in
	e.check()
	return e.runScan(g, s, in)
}

func (e *expansion) scanShape(g *onnx.Graph, in []*Item) scanShape {
	s := scanShape{inputs: int(min(e.node.Int("num_scan_inputs", 0), int64(len(in))))}
	s.states = len(in) - s.inputs
	s.outputs = len(g.Outputs) - s.states
	if s.inputs < 1 || s.outputs < 0 || slices.Contains(in, nil) {
		e.fail("graph %q with %d outputs does not fit %d inputs of which %d are scanned", g.Name, len(g.Outputs), len(in), s.inputs)
	}
	list := func(name string, count int) []int64 {
		v := e.node.Ints(name, make([]int64, count))
		if len(v) != count {
			e.fail("attribute %q has %d numbers, want %d", name, len(v), count)
		}
		return v
	}
	if e.node.Opset < 9 {
		s.inputDirections = list("directions", s.inputs)
		s.inputAxes, s.outputAxes = make([]int64, s.inputs), make([]int64, s.outputs)
		s.outDirections = s.outputAxes
		return s
	}
	s.inputAxes, s.inputDirections = list("scan_input_axes", s.inputs), list("scan_input_directions", s.inputs)
	s.outputAxes, s.outDirections = list("scan_output_axes", s.outputs), list("scan_output_directions", s.outputs)
	return s
}

func (e *expansion) runScan(g *onnx.Graph, s scanShape, in []*Item) []*Item {
	length := e.scanLength(s, in[s.states:])
	if outs := e.loopedScan(g, s, in, length); outs != nil {
		return outs
	}
	steps, _ := length.Const()
	states := slices.Clone(in[:s.states])
	collected := newScans(s.outputs)
	for t := range steps {
		out := e.body(g, append(slices.Clone(states), e.scanned(s, in, length, extent.Of(t))...))
		e.check()
		states = out[:s.states]
		collected.add(out[s.states:])
	}
	outs := slices.Clone(states)
	for k := range collected {
		if s.outDirections[k] != 0 {
			slices.Reverse(collected[k])
		}
		outs = append(outs, e.stack(collected[k:k+1], g.Outputs[s.states+k:], s.outputAxes[k])...)
	}
	return outs
}

// scanned returns the elements of the scanned inputs in an iteration.
func (e *expansion) scanned(s scanShape, in []*Item, length, t extent.Extent) (elements []*Item) {
	for k, it := range in[s.states:] {
		at := t
		if s.inputDirections[k] != 0 {
			at = length.Minus(extent.Of(1)).Minus(t)
		}
		elements = append(elements, tensorItem(e.take(it.Tensor, s.inputAxes[k], at)))
	}
	return elements
}

// loopedScan adds the iterations as a loop; nil if they must be unrolled.
func (e *expansion) loopedScan(g *onnx.Graph, s scanShape, in []*Item, length extent.Extent) []*Item {
	init := tensorsOf(in[:s.states])
	if slices.Contains(init, nil) {
		return nil
	}
	after, stacked, ok := e.loopOf(Loop{Count: length, Init: init, Body: func(step extent.Extent, states []*Value) (made Iteration, err error) {
		out := e.body(g, append(itemsOf(states), e.scanned(s, in, length, step)...))
		made.Next = e.tensorsIn(out[:s.states])
		for k, v := range e.tensorsIn(out[s.states:]) {
			at := step
			if s.outDirections[k] != 0 {
				at = length.Minus(extent.Of(1)).Minus(step)
			}
			made.Parts, made.At = append(made.Parts, e.part(v)), append(made.At, at)
		}
		return made, nil
	}})
	if !ok {
		return nil
	}
	outs := itemsOf(after)
	for k, v := range stacked {
		outs = append(outs, tensorItem(e.moveFirst(v, s.outputAxes[k])))
	}
	return outs
}

// moveFirst moves the first axis of a value to another place.
func (e *expansion) moveFirst(v *Value, axis int64) *Value {
	rank := int64(v.Shape.Rank())
	if axis < 0 {
		axis += rank
	}
	if axis < 0 || axis >= rank {
		e.fail("there is no axis %d to stack along", axis)
	}
	if axis == 0 {
		return v
	}
	var perm []int64
	for k := range rank - 1 {
		perm = append(perm, k+1)
	}
	return e.op(Transpose, attributes{intsOf("perm", slices.Insert(perm, int(axis), 0)...)}, v)
}

// tensorsOf returns the tensors of items, nil for others.
func tensorsOf(items []*Item) []*Value {
	values := make([]*Value, len(items))
	for k, it := range items {
		if it != nil {
			values[k] = it.Tensor
		}
	}
	return values
}

// tensorsIn returns the tensors of items, which must be tensors.
func (e *expansion) tensorsIn(items []*Item) []*Value {
	values := tensorsOf(items)
	if slices.Contains(values, nil) {
		e.fail("a result of the body is not a tensor")
	}
	return values
}

func itemsOf(values []*Value) []*Item {
	items := make([]*Item, len(values))
	for k, v := range values {
		items[k] = tensorItem(v)
	}
	return items
}

// scanLength returns the common extent of the scanned inputs.
func (e *expansion) scanLength(s scanShape, in []*Item) (length extent.Extent) {
	for k, it := range in {
		if it.Tensor == nil {
			e.fail("input %d is not a tensor", s.states+k)
		}
		rank := int64(it.Tensor.Shape.Rank())
		if s.inputAxes[k] < 0 {
			s.inputAxes[k] += rank
		}
		axis := s.inputAxes[k]
		if axis < 0 || axis >= rank || k > 0 && it.Tensor.Shape.At(int(axis)) != length {
			e.fail("input %d is %v, which cannot be scanned along axis %d", s.states+k, it.Tensor.Type, axis)
		}
		length = it.Tensor.Shape.At(int(axis))
	}
	return length
}

// take returns position at of an axis, without the axis.
func (e *expansion) take(v *Value, axis int64, at extent.Extent) *Value {
	return e.op(Squeeze, nil, e.span(v, axis, at, at.Plus(extent.Of(1))), e.ints(axis))
}

// batchedScan expands Scan of operator set 8: all operands have a leading batch axis, and input 0 may hold the
// lengths of the sequences.
func (e *expansion) batchedScan(g *onnx.Graph) []*Item {
	if len(e.in) < 2 || e.in[0] != nil {
		e.fail("sequence_lens of operator set 8 is not supported: convert the model to operator set 9 or newer")
	}
	in := e.in[1:]
	s := e.scanShape(g, in)
	e.check()
	batch := int64(0)
	for _, it := range in {
		if it.Tensor == nil || it.Tensor.Shape.Rank() == 0 || batch > 0 && fixedAt(it.Tensor, 0) != batch {
			e.fail("an input has no batch axis, or another one")
		}
		batch = fixedAt(it.Tensor, 0)
	}
	columns := newScans(len(g.Outputs))
	for b := range batch {
		row := make([]*Item, len(in))
		for k, it := range in {
			row[k] = tensorItem(e.take(it.Tensor, 0, extent.Of(b)))
		}
		out := e.runScan(g, s, row)
		e.check()
		columns.add(out)
	}
	return e.stack(columns, g.Outputs, 0)
}
