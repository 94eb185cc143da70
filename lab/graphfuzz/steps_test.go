package graphfuzz

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// step adds a node of a random kind, or none if no value suits.
func (g *generator) step() {
	kinds := []func(){
		g.unary, g.unary, g.binary, g.binary, g.compare, g.logic, g.where, g.cast, g.transpose, g.reshape, g.concat, g.slice, g.pad,
		g.split, g.expand, g.gather, g.reduce, g.reduce, g.softmax, g.norm, g.matmul, g.matmul, g.gemm, g.conv, g.conv, g.pool, g.batchNorm,
	}
	pick(g, kinds)()
}

func isFloat(t tensor) bool { return t.dtype == array.Float32 || t.dtype == array.Float64 }
func isSingle(t tensor) bool {
	return t.dtype == array.Float32
}
func isImage(t tensor) bool    { return isSingle(t) && t.rank() == 4 }
func hasAxis(t tensor) bool    { return t.rank() > 0 }
func isNumber(t tensor) bool   { return isFloat(t) || t.dtype == array.Int32 || t.dtype == array.Int64 }
func anything(tensor) bool     { return true }
func fits(shape []int64) bool  { return array.Elements(shape) <= maxElements }
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
		in = single(g.node("Tanh", t.dtype, t.shape, in))
	case "Sqrt":
		in = single(g.node("Abs", t.dtype, t.shape, in))
	}
	g.node(op, t.dtype, t.shape, in)
}

// partner returns a tensor that broadcasts with t: another value or a new constant.
func (g *generator) partner(t tensor) (name string, shape []int64) {
	other, ok := g.any(func(o tensor) bool {
		shape, ok := broadcast(t.shape, o.shape)
		return o.dtype == t.dtype && ok && fits(shape)
	})
	if ok && g.rng.IntN(3) > 0 {
		shape, _ = broadcast(t.shape, other.shape)
		return other.name, shape
	}
	part := slices.Clone(t.shape[g.rng.IntN(t.rank()+1):])
	for k := range part {
		if g.rng.IntN(3) == 0 {
			part[k] = 1
		}
	}
	return g.constant(g.random(t.dtype, part)), t.shape
}

// broadcast returns the common shape of two shapes by numpy's rules.
func broadcast(a, b []int64) (shape []int64, ok bool) {
	if len(a) < len(b) {
		a, b = b, a
	}
	shape = slices.Clone(a)
	for k, e := range b {
		at := len(a) - len(b) + k
		switch {
		case shape[at] == 1:
			shape[at] = e
		case e != 1 && e != shape[at]:
			return nil, false
		}
	}
	return shape, true
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
	g.node(pick(g, []string{"Add", "Sub", "Mul", "Max", "Min"}), t.dtype, shape, in)
}

// compare adds a comparison of integers, which rounding errors do not affect.
func (g *generator) compare() {
	t, ok := g.any(func(t tensor) bool { return t.dtype == array.Int32 || t.dtype == array.Int64 })
	if !ok {
		return
	}
	other, shape := g.partner(t)
	g.node(pick(g, []string{"Less", "LessOrEqual", "Greater", "Equal"}), array.Bool, shape, []string{t.name, other})
}

func (g *generator) logic() {
	t, ok := g.any(func(t tensor) bool { return t.dtype == array.Bool })
	if !ok {
		return
	}
	if g.rng.IntN(3) == 0 {
		g.node("Not", array.Bool, t.shape, single(t))
		return
	}
	other, shape := g.partner(t)
	g.node(pick(g, []string{"And", "Or", "Xor"}), array.Bool, shape, []string{t.name, other})
}

func (g *generator) where() {
	cond, ok := g.any(func(t tensor) bool { return t.dtype == array.Bool })
	if !ok {
		return
	}
	t, ok := g.any(func(t tensor) bool {
		shape, ok := broadcast(t.shape, cond.shape)
		return isNumber(t) && ok && fits(shape)
	})
	if !ok {
		return
	}
	shape, _ := broadcast(t.shape, cond.shape)
	in := []string{cond.name, t.name, g.constant(g.random(t.dtype, nil))}
	if g.rng.IntN(2) == 0 {
		in[1], in[2] = in[2], in[1]
	}
	g.node("Where", t.dtype, shape, in)
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
	g.node("Cast", to, t.shape, single(t), integer("to", int64(onnx.DataType(to))))
}

func (g *generator) transpose() {
	t, ok := g.any(func(t tensor) bool { return t.rank() > 1 })
	if !ok {
		return
	}
	order, shape := make([]int64, t.rank()), make([]int64, t.rank())
	for k, d := range g.rng.Perm(t.rank()) {
		order[k], shape[k] = int64(d), t.shape[d]
	}
	g.node("Transpose", t.dtype, shape, single(t), ints("perm", order...))
}

// reshape joins or splits axes.
func (g *generator) reshape() {
	t, ok := g.any(anything)
	if !ok {
		return
	}
	n := array.Elements(t.shape)
	var shape []int64
	for _, f := range []int64{2, 3, 4, 5} {
		if n%f == 0 && g.rng.IntN(2) == 0 {
			shape = append(shape, f)
			n /= f
		}
	}
	shape = append(shape, n)
	g.rng.Shuffle(len(shape), func(i, j int) { shape[i], shape[j] = shape[j], shape[i] })
	g.node("Reshape", t.dtype, shape, []string{t.name, g.ints(shape...)})
}

func (g *generator) concat() {
	t, ok := g.any(hasAxis)
	if !ok {
		return
	}
	axis := g.rng.IntN(t.rank())
	in, shape := single(t), slices.Clone(t.shape)
	for range 1 + g.rng.IntN(3) {
		other, ok := g.any(func(o tensor) bool { return o.dtype == t.dtype && sameBut(o.shape, t.shape, axis) })
		if !ok || shape[axis]+other.shape[axis] > 64 || array.Elements(shape)*2 > maxElements {
			break
		}
		in = append(in, other.name)
		shape[axis] += other.shape[axis]
	}
	g.node("Concat", t.dtype, shape, in, integer("axis", int64(axis)))
}

func sameBut(a, b []int64, axis int) bool {
	if len(a) != len(b) {
		return false
	}
	for k := range a {
		if k != axis && a[k] != b[k] {
			return false
		}
	}
	return true
}

func (g *generator) slice() {
	t, ok := g.any(hasAxis)
	if !ok {
		return
	}
	axis := g.rng.IntN(t.rank())
	n := t.shape[axis]
	start, step := int64(g.rng.IntN(int(n))), 1+int64(g.rng.IntN(2))
	end := start + 1 + int64(g.rng.IntN(int(n-start)))
	shape := slices.Clone(t.shape)
	shape[axis] = (end - start + step - 1) / step
	if g.rng.IntN(5) == 0 { // backwards
		start, end, step = n-1, -n-1, -1
		shape[axis] = n
	}
	g.node("Slice", t.dtype, shape, []string{t.name, g.ints(start), g.ints(end), g.ints(int64(axis)), g.ints(step)})
}

func (g *generator) pad() {
	t, ok := g.any(func(t tensor) bool { return hasAxis(t) && isSingle(t) })
	if !ok {
		return
	}
	pads, shape := make([]int64, 2*t.rank()), slices.Clone(t.shape)
	for k := range shape {
		pads[k], pads[k+t.rank()] = int64(g.rng.IntN(3)), int64(g.rng.IntN(2))
		shape[k] += pads[k] + pads[k+t.rank()]
	}
	if fits(shape) {
		g.node("Pad", t.dtype, shape, []string{t.name, g.ints(pads...)})
	}
}

// split adds a split into two results, either of which may be a dead end.
func (g *generator) split() {
	t, ok := g.any(func(t tensor) bool { return hasAxis(t) && t.shape[t.rank()-1] > 1 })
	if !ok {
		return
	}
	axis := t.rank() - 1
	first := 1 + int64(g.rng.IntN(int(t.shape[axis]-1)))
	a, b := g.value(t.dtype, t.shape), g.value(t.dtype, t.shape)
	a.shape[axis], b.shape[axis] = first, t.shape[axis]-first
	g.graph.Nodes = append(g.graph.Nodes, &onnx.Node{
		Name: "n_" + a.name, Op: "Split", Inputs: []string{t.name, g.ints(first, b.shape[axis])}, Outputs: []string{a.name, b.name},
		Attributes: []*onnx.Attribute{integer("axis", int64(axis))},
	})
	g.tensors = append(g.tensors, a, b)
}

func (g *generator) expand() {
	t, ok := g.any(anything)
	if !ok {
		return
	}
	shape := slices.Clone(t.shape)
	for k := range shape {
		if shape[k] == 1 {
			shape[k] = 1 + int64(g.rng.IntN(5))
		}
	}
	shape = append([]int64{1 + int64(g.rng.IntN(3))}, shape...)
	if fits(shape) && len(shape) < 6 {
		g.node("Expand", t.dtype, shape, []string{t.name, g.ints(shape...)})
	}
}

func (g *generator) gather() {
	t, ok := g.any(hasAxis)
	if !ok {
		return
	}
	axis := g.rng.IntN(t.rank())
	rows := array.New(array.Int64, 1+int64(g.rng.IntN(5)))
	for i := range rows.Len() {
		rows.SetInt(i, int64(g.rng.IntN(int(2*t.shape[axis])))-t.shape[axis])
	}
	shape := slices.Clone(t.shape)
	shape[axis] = rows.Len()
	if fits(shape) {
		g.node("Gather", t.dtype, shape, []string{t.name, g.constant(rows)}, integer("axis", int64(axis)))
	}
}
