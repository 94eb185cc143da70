package rewrite

import (
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// moves lists operators whose results are elements of their data and commute with adding a constant. The padding of
// a maximum is less than every element in any type.
var moves = []string{"MaxPool", "GlobalMaxPool", op.Concat, op.Reshape, "Flatten", op.Squeeze, op.Unsqueeze, op.Transpose, op.Slice}

// ShiftBytes returns the pass that converts bytes multiplied by known integers to the type that a processor
// multiplies best: it adds 128 to signed ones, or subtracts it from unsigned ones. The known contribution to each
// sum is subtracted from the results. Bytes quantised within the model get another zero point instead.
func ShiftBytes(to array.DType) graph.Pass {
	return graph.Pass{Name: "shift-bytes", Run: op.Catching(func(g *graph.Graph) {
		s := &shift{Graph: g, to: to, from: array.Int8, by: 128, users: g.Users(), wanted: map[*graph.Value]bool{}, shifted: map[*graph.Value]*graph.Value{}}
		if to == array.Int8 {
			s.from, s.by = array.Uint8, -128
		}
		s.run()
	})}
}

type shift struct {
	*graph.Graph
	from, to array.DType
	by       int64
	users    map[*graph.Value][]*graph.Node
	// wanted caches which values products read; shifted maps values to their replacements.
	wanted  map[*graph.Value]bool
	shifted map[*graph.Value]*graph.Value
	// made lists the nodes to add after the current one, preceded by those to add before it.
	made []*graph.Node
}

func (s *shift) run() {
	var nodes []*graph.Node
	for _, n := range s.Nodes {
		s.made = nil
		s.node(n)
		nodes = append(append(nodes, n), s.made...)
	}
	s.Nodes = nodes
}

// node creates the replacement of a node, or of its result if products read it.
func (s *shift) node(n *graph.Node) {
	switch {
	case s.multiplies(n):
		s.product(n)
	case n.Is(op.Dequantize) && s.shifted[n.Operands[0]] != nil && s.zero(n) != nil:
		in := slices.Clone(n.Operands)
		in[0] = s.shifted[in[0]]
		in = append(in[:2], s.zero(n))
		s.Replace(n.Result, s.apply(n.Node, n.Attrs, n.Result.Name, in...))
	case n.Out.DType != s.from || !s.wants(n.Result):
	case n.Is(op.Quantize) && s.zero(n) != nil:
		attrs := maps.Clone(n.Attrs)
		attrs["to"] = &onnx.Attribute{Name: "to", Type: onnx.AttrInt, Int: int64(onnx.DataType(s.to))}
		s.shifted[n.Result] = s.apply(n.Node, attrs, n.Result.Name, n.Operands[0], n.Operands[1], s.zero(n))
	case slices.Contains(moves, n.Op):
		in := slices.Clone(n.Operands)
		for k, v := range in {
			if v != nil && v.DType == s.from {
				if in[k] = s.shifted[v]; in[k] == nil {
					return
				}
			}
		}
		s.shifted[n.Result] = s.apply(n.Node, n.Attrs, n.Result.Name, in...)
	}
}

// multiplies reports whether a node is a product of such bytes and known integers.
func (s *shift) multiplies(n *graph.Node) bool {
	if !n.Is(op.IntegerConv) && !n.Is(op.IntegerMatMul) {
		return false
	}
	data, weights := n.Operands[0], n.Operands[1]
	if data.DType != s.from || data.Const != nil || weights.Const == nil || weights.DType != array.Int8 {
		return false
	}
	if n.Is(op.IntegerMatMul) {
		return data.Shape.Rank() > 1 && weights.Shape.Rank() == 2
	}
	return len(n.Operands) < 3 || n.Operands[2] == nil || n.Operands[2].Const != nil
}

// wants reports whether products read a value, directly or after its elements are moved.
func (s *shift) wants(v *graph.Value) bool {
	if known, ok := s.wanted[v]; ok {
		return known
	}
	s.wanted[v] = slices.ContainsFunc(s.users[v], func(n *graph.Node) bool {
		return s.multiplies(n) && n.Operands[0] == v || slices.Contains(moves, n.Op) && n.Out.DType == s.from && s.wants(n.Result)
	})
	return s.wanted[v]
}

// zero returns the shifted zero point of a quantisation or dequantisation; nil if it is not a single number.
func (s *shift) zero(n *graph.Node) *graph.Value {
	if len(n.Operands) < 3 || n.Operands[2] == nil {
		return s.number(0)
	}
	if !isScalar(n.Operands[2]) {
		return nil
	}
	return s.number(n.Operands[2].Const.Int(0))
}

// number returns a known byte, shifted.
func (s *shift) number(v int64) *graph.Value {
	return s.Constant("shifted", array.Scalar(s.to, float64(v+s.by)))
}

// data returns a shifted value: by an additional kernel, if its producer cannot shift it.
func (s *shift) data(v *graph.Value, n *graph.Node) *graph.Value {
	if made := s.shifted[v]; made != nil {
		return made
	}
	by := array.Scalar(array.Int32, float64(s.by))
	cast := func(to array.DType, v *graph.Value) *graph.Value {
		return s.apply(&op.Node{Name: n.Name, Op: op.Cast, Opset: n.Opset}, map[string]*onnx.Attribute{
			"to": {Name: "to", Type: onnx.AttrInt, Int: int64(onnx.DataType(to))}}, v.Name, v)
	}
	wide := s.apply(&op.Node{Name: n.Name, Op: op.Add, Opset: n.Opset}, nil, v.Name, cast(array.Int32, v), s.Constant("shift", by))
	s.shifted[v] = cast(s.to, wide)
	return s.shifted[v]
}

// product multiplies the shifted data and subtracts the contribution of the shift from each result.
func (s *shift) product(n *graph.Node) {
	in := []*graph.Value{s.data(n.Operands[0], n), n.Operands[1]}
	if n.Is(op.IntegerConv) {
		padding := int64(0)
		if len(n.Operands) > 2 && n.Operands[2] != nil {
			padding = n.Operands[2].Const.Int(0)
		}
		in = append(in, s.number(padding))
	}
	sum := s.apply(n.Node, n.Attrs, n.Result.Name, in...)
	added := s.added(n)
	readers := s.users[n.Result]
	if len(readers) == 1 && readers[0].Is(op.Sub) && !s.IsOutput(n.Result) && readers[0].Operands[0] == n.Result {
		if c := readers[0].Operands[1]; c.Const != nil && slices.Equal(c.Shape.Fixed(), added.Shape) {
			for i := range added.Len() {
				added.SetInt(i, added.Int(i)+c.Const.Int(i))
			}
			n = readers[0]
		}
	}
	s.Replace(n.Result, s.apply(&op.Node{Name: n.Name, Op: op.Sub, Opset: n.Opset}, nil, n.Result.Name, sum, s.Constant(n.Result.Name+".added", added)))
}

// added returns the contribution of the shift to each channel of a product: the sum of its weights times the shift.
func (s *shift) added(n *graph.Node) *array.Array {
	w := n.Operands[1].Const
	channels, axes := w.Shape[0], slices.Repeat([]int64{1}, len(w.Shape)-1)
	axes[0] = channels
	if n.Is(op.IntegerMatMul) {
		channels, axes = w.Shape[1], []int64{1, w.Shape[1]}
	}
	a := array.New(array.Int32, axes...)
	for i := range w.Len() {
		channel := i / (w.Len() / channels)
		if n.Is(op.IntegerMatMul) {
			channel = i % channels
		}
		a.SetInt(channel, a.Int(channel)+s.by*w.Int(i))
	}
	return a
}

func (s *shift) apply(like *op.Node, attrs map[string]*onnx.Attribute, name string, in ...*graph.Value) *graph.Value {
	made := op.Get(s.Apply(op.Node{Name: like.Name, Op: like.Op, Opset: like.Opset, Attrs: attrs}, name, in...))
	s.made = append(s.made, made)
	return made.Result
}
