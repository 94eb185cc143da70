package graphfuzz

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// step adds a node of a random kind, or none if no value suits.
func (g *generator) step() {
	kinds := []func(){
		g.unary, g.unary, g.binary, g.binary, g.compare, g.logic, g.where, g.cast, g.transpose, g.reshape, g.reshape, g.concat, g.slice, g.pad,
		g.split, g.expand, g.gather, g.reduce, g.reduce, g.softmax, g.norm, g.matmul, g.matmul, g.gemm, g.conv, g.conv, g.pool, g.batchNorm,
		g.tile, g.filled, g.positions, g.mask, g.resize, g.attention, g.selectRange, g.largest, g.cumSum, g.argMax, g.groupNorm, g.convTranspose, g.rotate, g.align,
		g.scaled, g.blocksOfSpace, g.einsum, g.scatter, g.oneHot, g.crop, g.roll, g.recurrent, g.sample, g.lengths,
	}
	pick(g, kinds)()
}

func isFloat(t tensor) bool { return t.dtype == array.Float32 || t.dtype == array.Float64 }
func isSingle(t tensor) bool {
	return t.dtype == array.Float32
}
func hasAxis(t tensor) bool   { return t.rank() > 0 }
func isNumber(t tensor) bool  { return isFloat(t) || t.dtype == array.Int32 || t.dtype == array.Int64 }
func anything(tensor) bool    { return true }
func fits(shape []int64) bool { return array.Elements(shape) <= maxElements }
func isFull(t tensor) bool    { return !slices.ContainsFunc(t.dims.Extents(), isMaybeNone) }
func isMaybeNone(e extent.Extent) bool {
	return e.Min() < 1
}
func single(t tensor) []string { return []string{t.name} }

// unary adds a unary function that is bounded or smooth, so that rounding errors stay small.
func (g *generator) unary() {
	t, ok := g.any(isFloat)
	if !ok {
		return
	}
	op := pick(g, []string{"Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Erf", "LeakyRelu", "HardSigmoid", "Elu", "Exp", "Sqrt", "HardSwish", "Identity"})
	if t.dtype == array.Float64 {
		op = pick(g, []string{"Relu", "Tanh", "Neg", "Abs", "Sigmoid"})
	}
	in := single(t)
	switch op {
	case "Exp":
		in = single(g.nodeOf("Tanh", t.dtype, t.dims, in))
	case "Sqrt":
		in = single(g.nodeOf("Abs", t.dtype, t.dims, in))
	}
	g.nodeOf(op, t.dtype, t.dims, in)
}

// partner returns a tensor that broadcasts with t: another value or a new constant.
func (g *generator) partner(t tensor) (name string, shape extent.Shape) {
	other, ok := g.any(func(o tensor) bool {
		shape, ok := broadcast(t.dims, o.dims)
		return o.dtype == t.dtype && ok && fits(shape.Max())
	})
	if ok && g.rng.IntN(3) > 0 {
		shape, _ = broadcast(t.dims, other.dims)
		return other.name, shape
	}
	part := slices.Clone(t.shape[g.rng.IntN(t.rank()+1):])
	for k := range part {
		if g.rng.IntN(3) == 0 || t.dims.At(t.rank()-len(part)+k).IsOpen() {
			part[k] = 1
		}
	}
	return g.constant(g.random(t.dtype, part)), t.dims
}

// broadcast returns the common shape of two shapes by numpy's rules.
func broadcast(a, b extent.Shape) (shape extent.Shape, ok bool) {
	if a.Rank() < b.Rank() {
		a, b = b, a
	}
	all := slices.Clone(a.Extents())
	for k, e := range b.Extents() {
		at := len(all) - b.Rank() + k
		switch {
		case all[at].Is(1):
			all[at] = e
		case !e.Is(1) && e != all[at]:
			return extent.Shape{}, false
		}
	}
	return extent.ShapeOf(all...), true
}

func (g *generator) binary() {
	t, ok := g.any(isNumber)
	if !ok {
		return
	}
	other, shape := g.partner(t)
	in := []string{t.name, other}
	if g.rng.IntN(2) == 0 {
		slices.Reverse(in)
	}
	g.nodeOf(pick(g, []string{"Add", "Sub", "Mul", "Max", "Min"}), t.dtype, shape, in)
}

// compare adds a comparison of integers, which rounding errors do not affect.
func (g *generator) compare() {
	t, ok := g.any(func(t tensor) bool { return t.dtype == array.Int32 || t.dtype == array.Int64 })
	if !ok {
		return
	}
	other, shape := g.partner(t)
	g.nodeOf(pick(g, []string{"Less", "LessOrEqual", "Greater", "Equal"}), array.Bool, shape, []string{t.name, other})
}

func (g *generator) logic() {
	t, ok := g.any(func(t tensor) bool { return t.dtype == array.Bool })
	if !ok {
		return
	}
	if g.rng.IntN(3) == 0 {
		g.nodeOf("Not", array.Bool, t.dims, single(t))
		return
	}
	other, shape := g.partner(t)
	g.nodeOf(pick(g, []string{"And", "Or", "Xor"}), array.Bool, shape, []string{t.name, other})
}

func (g *generator) where() {
	cond, ok := g.any(func(t tensor) bool { return t.dtype == array.Bool })
	if !ok {
		return
	}
	t, ok := g.any(func(t tensor) bool {
		shape, ok := broadcast(t.dims, cond.dims)
		return isNumber(t) && ok && fits(shape.Max())
	})
	if !ok {
		return
	}
	shape, _ := broadcast(t.dims, cond.dims)
	in := []string{cond.name, t.name, g.constant(g.random(t.dtype, nil))}
	if g.rng.IntN(2) == 0 {
		in[1], in[2] = in[2], in[1]
	}
	g.nodeOf("Where", t.dtype, shape, in)
}

// cast adds a conversion from integers to any type, or between floats. It avoids floats to integers, which would
// depend on rounding.
func (g *generator) cast() {
	t, ok := g.any(anything)
	if !ok {
		return
	}
	to := pick(g, []array.DType{array.Float32, array.Float64})
	if !isFloat(t) {
		to = pick(g, inputTypes)
	}
	g.nodeOf("Cast", to, t.dims, single(t), integer("to", int64(onnx.DataType(to))))
}

func (g *generator) transpose() {
	t, ok := g.any(func(t tensor) bool { return t.rank() > 1 })
	if !ok {
		return
	}
	order := g.rng.Perm(t.rank())
	perm := make([]int64, len(order))
	for k, axis := range order {
		perm[k] = int64(axis)
	}
	g.nodeOf("Transpose", t.dtype, t.dims.Permuted(order), single(t), ints("perm", perm...))
}

func (g *generator) concat() {
	t, ok := g.any(hasAxis)
	if !ok {
		return
	}
	axis := g.rng.IntN(t.rank())
	in, shape := single(t), t.dims
	for range 1 + g.rng.IntN(3) {
		other, ok := g.any(func(o tensor) bool { return o.dtype == t.dtype && sameBut(o.dims, t.dims, axis) })
		if !ok || shape.Max()[axis]+other.shape[axis] > 64 || array.Elements(shape.Max())*2 > maxElements {
			break
		}
		in = append(in, other.name)
		shape = shape.With(axis, shape.At(axis).Plus(other.dims.At(axis)))
	}
	g.nodeOf("Concat", t.dtype, shape, in, integer("axis", int64(axis)))
}

func sameBut(a, b extent.Shape, axis int) bool {
	if a.Rank() != b.Rank() {
		return false
	}
	for k := range a.Rank() {
		if k != axis && a.At(k) != b.At(k) {
			return false
		}
	}
	return true
}

// slice adds a part of one axis, whose end may be counted from the end or be an extent of another value.
func (g *generator) slice() {
	t, ok := g.any(func(t tensor) bool { return hasAxis(t) && isFull(t) })
	if !ok {
		return
	}
	axis := g.rng.IntN(t.rank())
	n := t.dims.At(axis)
	least := int(n.Min())
	start, step := int64(g.rng.IntN(least)), 1+int64(g.rng.IntN(2))
	from, to, end := g.ints(start), g.ints(math.MaxInt64), n
	switch g.rng.IntN(5) {
	case 0: // backwards
		from, to, step = g.ints(-1), g.ints(math.MinInt64), -1
		g.nodeOf("Slice", t.dtype, t.dims, []string{t.name, from, to, g.ints(int64(axis)), g.ints(step)})
		return
	case 1: // to the end
	case 2: // without the last elements
		back := int64(g.rng.IntN(least - int(start)))
		to, end = g.ints(-back), n.Minus(extent.Of(back))
		if back == 0 {
			to = g.ints(math.MaxInt64)
		}
	case 3: // as many as another value has
		other, ok := g.any(func(o tensor) bool {
			return slices.ContainsFunc(o.dims.Extents(), func(e extent.Extent) bool { return e.AtMost(n) && e.Min() > start })
		})
		if !ok {
			return
		}
		size := slices.IndexFunc(other.dims.Extents(), func(e extent.Extent) bool { return e.AtMost(n) && e.Min() > start })
		end = other.dims.At(size)
		to = g.size(other, size).name
		if g.rng.IntN(2) == 0 && end.Less(n.Plus(extent.Of(1))) { // the last ones
			from = g.apart("Sub", array.Int64, extent.Fixed(1), []string{g.size(t, axis).name, to}).name
			shape := t.dims.With(axis, end)
			g.nodeOf("Slice", t.dtype, shape, []string{t.name, from, g.ints(math.MaxInt64), g.ints(int64(axis))})
			return
		}
	default:
		last := start + 1 + int64(g.rng.IntN(least-int(start)))
		to, end = g.ints(last), extent.Of(last)
	}
	shape := t.dims.With(axis, end.Minus(extent.Of(start)).CeilOver(extent.Of(step)))
	g.nodeOf("Slice", t.dtype, shape, []string{t.name, from, to, g.ints(int64(axis)), g.ints(step)})
}

func (g *generator) pad() {
	t, ok := g.any(func(t tensor) bool { return hasAxis(t) && isSingle(t) && isFull(t) })
	if !ok {
		return
	}
	pads, shape := make([]int64, 2*t.rank()), slices.Clone(t.dims.Extents())
	mode := pick(g, []string{"constant", "constant", "edge", "reflect"})
	for k := range shape {
		pads[k], pads[k+t.rank()] = int64(g.rng.IntN(3)), int64(g.rng.IntN(2))
		if mode != "constant" && (k < t.rank()-2 || shape[k].Min() < 3) {
			pads[k], pads[k+t.rank()] = 0, 0
		}
		shape[k] = shape[k].Plus(extent.Of(pads[k] + pads[k+t.rank()]))
	}
	if s := extent.ShapeOf(shape...); fits(s.Max()) {
		g.nodeOf("Pad", t.dtype, s, []string{t.name, g.ints(pads...)}, text("mode", mode))
	}
}

// split adds a split into two results, either of which may be a dead end.
func (g *generator) split() {
	t, ok := g.any(func(t tensor) bool { return hasAxis(t) && t.dims.At(t.rank()-1).Min() > 1 })
	if !ok {
		return
	}
	axis := t.rank() - 1
	n := t.dims.At(axis)
	first := extent.Of(1 + int64(g.rng.IntN(int(n.Min()-1))))
	in, attributes := single(t), []*onnx.Attribute{integer("axis", int64(axis))}
	switch {
	case n.IsOpen() && g.rng.IntN(2) == 0:
		half := g.over(g.size(t, axis), 2)
		first = half.of
		in = append(in, g.target(half, g.difference(g.size(t, axis), half)))
	case n.IsOpen():
		in = append(in, g.target(g.known(first), g.difference(g.size(t, axis), g.known(first))))
	case g.rng.IntN(3) == 0:
		first = n.CeilOver(extent.Of(2))
		attributes = append(attributes, integer("num_outputs", 2))
	default:
		in = append(in, g.target(g.known(first), g.known(n.Minus(first))))
	}
	a, b := g.valueOf(t.dtype, t.dims.With(axis, first)), g.valueOf(t.dtype, t.dims.With(axis, n.Minus(first)))
	g.graph.Nodes = append(g.graph.Nodes, &onnx.Node{
		Name: "n_" + a.name, Op: "Split", Inputs: in, Outputs: []string{a.name, b.name}, Attributes: attributes,
	})
	g.tensors = append(g.tensors, a, b)
}

func (g *generator) gather() {
	t, ok := g.any(func(t tensor) bool { return hasAxis(t) && isFull(t) })
	if !ok {
		return
	}
	axis := g.rng.IntN(t.rank())
	least := t.dims.At(axis).Min()
	rows := array.New(array.Int64, 1+int64(g.rng.IntN(5)))
	for i := range rows.Len() {
		rows.SetInt(i, int64(g.rng.IntN(int(2*least)))-least)
	}
	shape := t.dims.With(axis, extent.Of(rows.Len()))
	if fits(shape.Max()) {
		g.nodeOf("Gather", t.dtype, shape, []string{t.name, g.constant(rows)}, integer("axis", int64(axis)))
	}
}
