package graphfuzz

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// scaled divides a value by the root of an extent or of the number of its elements.
func (g *generator) scaled() {
	t, ok := g.any(func(t tensor) bool { return isSingle(t) && hasAxis(t) && isFull(t) })
	if !ok {
		return
	}
	n := g.apart("Size", array.Int64, extent.Fixed(), single(t)).name
	if g.rng.IntN(2) == 0 {
		n = g.size(t, g.rng.IntN(t.rank())).name
	}
	f := g.apart("Cast", t.dtype, extent.Fixed(), []string{n}, integer("to", int64(onnx.DataType(t.dtype))))
	f = g.apart("Sqrt", t.dtype, extent.Fixed(), single(f))
	g.nodeOf(pick(g, []string{"Div", "Mul"}), t.dtype, t.dims, []string{t.name, f.name})
}

// blocksOfSpace moves blocks of an image to its channels, or back.
func (g *generator) blocksOfSpace() {
	two, four := extent.Of(2), extent.Of(4)
	t, ok := g.any(func(t tensor) bool {
		return isSingle(t) && t.rank() == 4 && isFull(t) && (t.dims.At(2).Mod(two).Is(0) && t.dims.At(3).Mod(two).Is(0) || t.dims.At(1).Mod(four).Is(0))
	})
	if !ok {
		return
	}
	b, c, h, w := t.dims.At(0), t.dims.At(1), t.dims.At(2), t.dims.At(3)
	if c.Mod(four).Is(0) {
		shape := extent.ShapeOf(b, c.Over(four), h.Times(two), w.Times(two))
		g.nodeOf("DepthToSpace", t.dtype, shape, single(t), integer("blocksize", 2), text("mode", pick(g, []string{"DCR", "CRD"})))
		return
	}
	g.nodeOf("SpaceToDepth", t.dtype, extent.ShapeOf(b, c.Times(four), h.Over(two), w.Over(two)), single(t), integer("blocksize", 2))
}

// einsum multiplies a matrix of rows by itself or by constant columns.
func (g *generator) einsum() {
	t, ok := g.any(func(t tensor) bool { return isSingle(t) && t.rank() == 3 && isFull(t) })
	if !ok {
		return
	}
	b, i, j := t.dims.At(0), t.dims.At(1), t.dims.At(2)
	shape, in, equation := extent.ShapeOf(b, i, i), []string{t.name, t.name}, "bij,bkj->bik"
	switch g.rng.IntN(3) {
	case 0:
		shape, equation = extent.ShapeOf(j, b, j), "bij,bik->jbk"
	case 1:
		if !j.IsOpen() {
			shape, equation = extent.ShapeOf(b, extent.Of(3), i), "bij,jk->bki"
			in[1] = g.constant(g.random(t.dtype, []int64{j.Max(), 3}))
		}
	}
	if fits(shape.Max()) {
		g.nodeOf("Einsum", t.dtype, shape, in, text("equation", equation))
	}
}

// scatter writes rows of a value to other places of it: backward, or those of a list.
func (g *generator) scatter() {
	t, ok := g.any(func(t tensor) bool { return isSingle(t) && hasAxis(t) && isFull(t) })
	if !ok {
		return
	}
	least := t.dims.At(0).Min()
	var places tensor
	if g.rng.IntN(2) == 0 {
		list := array.New(array.Int64, 1+int64(g.rng.IntN(int(least))), 1)
		for i, k := range g.rng.Perm(int(least))[:list.Len()] {
			list.SetInt(int64(i), int64(k))
		}
		places = tensor{g.constant(list), array.Int64, list.Shape, extent.Fixed(list.Shape...)}
	} else {
		n := g.size(t, 0)
		last := g.difference(n, g.known(extent.Of(1)))
		back := g.nodeOf("Sub", array.Int64, extent.ShapeOf(n.of), []string{last.name, g.ramp(n).name})
		places = g.nodeOf("Unsqueeze", array.Int64, extent.ShapeOf(n.of, extent.Of(1)), []string{back.name, g.ints(1)})
	}
	rows := t.dims.With(0, places.dims.At(0))
	updates := g.nodeOf("Slice", t.dtype, rows, []string{t.name, g.ints(0), g.target(g.size(places, 0)), g.ints(0)})
	updates = g.nodeOf("Neg", t.dtype, rows, single(updates))
	g.nodeOf("ScatterND", t.dtype, t.dims, []string{t.name, places.name, updates.name}, text("reduction", pick(g, []string{"none", "add"})))
}

// oneHot selects among the positions along an axis, as many as another extent.
func (g *generator) oneHot() {
	t, ok := g.any(func(t tensor) bool { return t.dtype == array.Int64 && hasAxis(t) && t.rank() < 4 })
	if !ok {
		return
	}
	depth := g.anExtent()
	shape := extent.Concat(t.dims, extent.ShapeOf(depth.of))
	if depth.of.Min() < 1 || !fits(shape.Max()) {
		return
	}
	g.nodeOf("OneHot", array.Float32, shape, []string{t.name, depth.name, g.constant(array.FromFloat32([]float32{-0.5, 1}, 2))}, integer("axis", -1))
}

// crop takes the middle of the last axes, as many elements as there are in another value.
func (g *generator) crop() {
	t, ok := g.any(func(t tensor) bool { return t.rank() == 4 && isFull(t) })
	if !ok {
		return
	}
	o, ok := g.any(func(o tensor) bool {
		return o.rank() == 4 && isFull(o) && o.dims.At(2).AtMost(t.dims.At(2)) && o.dims.At(3).AtMost(t.dims.At(3)) && o.name != t.name
	})
	if !ok {
		return
	}
	var begin, end []count
	for axis := 2; axis < 4; axis++ {
		n := g.size(o, axis)
		b := g.over(g.difference(g.size(t, axis), n), 2)
		begin, end = append(begin, b), append(end, g.sum(b, n))
	}
	y := g.nodeOf("Slice", t.dtype, t.dims.With(2, o.dims.At(2)).With(3, o.dims.At(3)), []string{t.name, g.target(begin...), g.target(end...), g.ints(2, 3)})
	if y.dtype == o.dtype && y.dims.At(0) == o.dims.At(0) && fits(y.shape) && fits(o.shape) {
		g.nodeOf("Concat", y.dtype, y.dims.With(1, y.dims.At(1).Plus(o.dims.At(1))), []string{y.name, o.name}, integer("axis", 1))
	}
}

// roll moves the elements of an axis by some places.
func (g *generator) roll() {
	t, ok := g.any(func(t tensor) bool { return hasAxis(t) && isFull(t) })
	if !ok {
		return
	}
	axis := g.rng.IntN(t.rank())
	n := t.dims.At(axis)
	by := int64(g.rng.IntN(int(n.Min())))
	at := g.ints(int64(axis))
	a := g.nodeOf("Slice", t.dtype, t.dims.With(axis, extent.Of(by)), []string{t.name, g.ints(0), g.ints(by), at})
	b := g.nodeOf("Slice", t.dtype, t.dims.With(axis, n.Minus(extent.Of(by))), []string{t.name, g.ints(by), g.ints(1 << 62), at})
	g.nodeOf("Concat", t.dtype, t.dims, []string{b.name, a.name}, integer("axis", int64(axis)))
}

// recurrent adds a recurrent layer over the first axis.
func (g *generator) recurrent() {
	t, ok := g.any(func(t tensor) bool {
		return isSingle(t) && t.rank() == 3 && isFull(t) && !t.dims.At(2).IsOpen()
	})
	if !ok {
		return
	}
	hidden, op := 1+int64(g.rng.IntN(4)), pick(g, []string{"LSTM", "GRU", "RNN"})
	gates, both := map[string]int64{"LSTM": 4, "GRU": 3, "RNN": 1}[op]*hidden, 1+int64(g.rng.IntN(2))
	attributes := []*onnx.Attribute{integer("hidden_size", hidden)}
	if both > 1 {
		attributes = append(attributes, text("direction", "bidirectional"))
	}
	small := func(shape ...int64) string {
		a := g.random(t.dtype, shape)
		for i := range a.Len() {
			a.SetFloat(i, a.Float(i)/4)
		}
		return g.constant(a)
	}
	shape := extent.ShapeOf(t.dims.At(0), extent.Of(both), t.dims.At(1), extent.Of(hidden))
	y := g.nodeOf(op, t.dtype, shape, []string{t.name, small(both, gates, t.shape[2]), small(both, gates, hidden)}, attributes...)
	g.nodeOf("ReduceSum", t.dtype, extent.ShapeOf(shape.At(0), shape.At(2), shape.At(3)), []string{y.name, g.ints(1)}, integer("keepdims", 0))
}

// sample reads an image at computed places.
func (g *generator) sample() {
	t, ok := g.any(func(t tensor) bool { return isSingle(t) && t.rank() == 4 && isFull(t) })
	if !ok {
		return
	}
	rows, columns := g.size(t, 2), g.size(t, 3)
	grid := extent.ShapeOf(t.dims.At(0), rows.of, columns.of, extent.Of(2))
	at := g.constant(array.FromFloat32([]float32{0.25, -0.5}, 2))
	places := g.nodeOf("Expand", t.dtype, grid, []string{at, g.target(g.size(t, 0), rows, columns, g.known(extent.Of(2)))})
	r := g.nodeOf("Cast", t.dtype, extent.ShapeOf(columns.of), single(g.ramp(columns)), integer("to", int64(onnx.DataType(t.dtype))))
	r = g.nodeOf("Mul", t.dtype, r.dims, []string{r.name, g.scalar(0.0625)})
	r = g.nodeOf("Unsqueeze", t.dtype, extent.ShapeOf(columns.of, extent.Of(1)), []string{r.name, g.ints(1)})
	places = g.nodeOf("Add", t.dtype, grid, []string{places.name, r.name})
	g.nodeOf("GridSample", t.dtype, t.dims, []string{t.name, places.name}, text("mode", "bilinear"), text("padding_mode", pick(g, []string{"zeros", "border"})),
		integer("align_corners", int64(g.rng.IntN(2))))
}

// lengths hides the positions behind the length of each row, which is an input.
func (g *generator) lengths() {
	t, ok := g.any(func(t tensor) bool { return isNumber(t) && t.rank() > 1 && isFull(t) })
	if !ok {
		return
	}
	x := g.valueOf(array.Int64, t.dims.Slice(0, 1))
	if _, made := g.inputs[t.name]; !made || len(g.graph.Inputs) > 6 {
		return
	}
	g.graph.Inputs = append(g.graph.Inputs, info(x))
	g.inputs[x.name] = g.random(array.Int64, x.shape)
	column := g.nodeOf("Unsqueeze", array.Int64, extent.ShapeOf(x.dims.At(0), extent.Of(1)), []string{x.name, g.ints(1)})
	shape := extent.ShapeOf(x.dims.At(0), t.dims.At(1))
	mask := g.nodeOf("Less", array.Bool, shape, []string{g.ramp(g.size(t, 1)).name, column.name})
	if t.rank() > 2 {
		all := slices.Clone(shape.Extents())
		var axes []int64
		for k := range t.rank() - 2 {
			axes, all = append(axes, int64(k+2)), append(all, extent.Of(1))
		}
		mask = g.nodeOf("Unsqueeze", array.Bool, extent.ShapeOf(all...), []string{mask.name, g.ints(axes...)})
	}
	g.nodeOf("Where", t.dtype, t.dims, []string{mask.name, t.name, g.constant(g.random(t.dtype, nil))})
}
