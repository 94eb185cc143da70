package op

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
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
		return nil
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

// scan unrolls Scan over the extent of its inputs.
func (e *expansion) scan() []*Item {
	g := e.node.Graph("body")
	if e.failed() {
		return nil
	}
	if e.node.Opset < 9 {
		return e.batchedScan(g)
	}
	s, in := e.scanShape(g, e.in), e.in
	if e.failed() {
		return nil
	}
	return e.runScan(g, s, in)
}

func (e *expansion) scanShape(g *onnx.Graph, in []*Item) scanShape {
	s := scanShape{inputs: int(min(e.node.Int("num_scan_inputs", 0), int64(len(in))))}
	s.states = len(in) - s.inputs
	s.outputs = len(g.Outputs) - s.states
	if s.inputs < 1 || s.outputs < 0 || slices.Contains(in, nil) {
		e.fail("graph %q with %d outputs does not fit %d inputs of which %d are scanned", g.Name, len(g.Outputs), len(in), s.inputs)
		return s
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
	states := slices.Clone(in[:s.states])
	length := e.scanLength(s, in[s.states:])
	collected := newScans(s.outputs)
	for t := range length {
		arguments := slices.Clone(states)
		for k, it := range in[s.states:] {
			at := t
			if s.inputDirections[k] != 0 {
				at = length - 1 - t
			}
			arguments = append(arguments, tensorItem(e.take(it.Tensor, s.inputAxes[k], at)))
		}
		out := e.body(g, arguments)
		if e.failed() {
			return nil
		}
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

// scanLength returns the common extent of the scanned inputs.
func (e *expansion) scanLength(s scanShape, in []*Item) int64 {
	length := int64(-1)
	for k, it := range in {
		if it.Tensor == nil {
			e.fail("input %d is not a tensor", s.states+k)
			return 0
		}
		rank := int64(it.Tensor.Shape.Rank())
		if s.inputAxes[k] < 0 {
			s.inputAxes[k] += rank
		}
		axis := s.inputAxes[k]
		if axis < 0 || axis >= rank || length >= 0 && fixedAt(it.Tensor, int(axis)) != length {
			e.fail("input %d is %v, which cannot be scanned along axis %d", s.states+k, it.Tensor.Type, axis)
			return 0
		}
		length = fixedAt(it.Tensor, int(axis))
	}
	return length
}

// take returns position at of an axis, without the axis.
func (e *expansion) take(v *Value, axis, at int64) *Value {
	return e.op(Squeeze, nil, e.slice(v, axis, at, at+1), e.ints(axis))
}

// batchedScan expands Scan of operator set 8: all operands have a leading batch axis, and input 0 may hold the
// lengths of the sequences.
func (e *expansion) batchedScan(g *onnx.Graph) []*Item {
	if len(e.in) < 2 || e.in[0] != nil {
		e.fail("sequence_lens of operator set 8 is not supported: convert the model to operator set 9 or newer")
		return nil
	}
	in := e.in[1:]
	s := e.scanShape(g, in)
	if e.failed() {
		return nil
	}
	batch := int64(0)
	for _, it := range in {
		if it.Tensor == nil || it.Tensor.Shape.Rank() == 0 || batch > 0 && fixedAt(it.Tensor, 0) != batch {
			e.fail("an input has no batch axis, or another one")
			return nil
		}
		batch = fixedAt(it.Tensor, 0)
	}
	columns := newScans(len(g.Outputs))
	for b := range batch {
		row := make([]*Item, len(in))
		for k, it := range in {
			row[k] = tensorItem(e.take(it.Tensor, 0, b))
		}
		out := e.runScan(g, s, row)
		if e.failed() {
			return nil
		}
		columns.add(out)
	}
	return e.stack(columns, g.Outputs, 0)
}
