package graphfuzz

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// count is a vector of one element that holds an extent.
type count struct {
	name string
	of   extent.Extent
}

// size reads an extent from the shape of a tensor, in one of the ways in which exporters write it.
func (g *generator) size(t tensor, axis int) count {
	e, at := t.dims.At(axis), int64(axis)
	if !e.IsOpen() && g.rng.IntN(4) > 0 {
		return g.known(e)
	}
	if g.rng.IntN(4) == 0 {
		return count{g.apart("Shape", array.Int64, extent.Fixed(1), single(t), integer("start", at), integer("end", at+1)).name, e}
	}
	shape := g.apart("Shape", array.Int64, extent.Fixed(int64(t.rank())), single(t)).name
	switch g.rng.IntN(3) {
	case 0:
		return count{g.apart("Gather", array.Int64, extent.Fixed(1), []string{shape, g.ints(at)}).name, e}
	case 1:
		return count{g.apart("Slice", array.Int64, extent.Fixed(1), []string{shape, g.ints(at), g.ints(at + 1), g.ints(0)}).name, e}
	}
	scalar := g.apart("Gather", array.Int64, extent.Fixed(), []string{shape, g.whole(at)})
	return count{g.apart("Unsqueeze", array.Int64, extent.Fixed(1), []string{scalar.name, g.ints(0)}).name, e}
}

// known returns a constant extent.
func (g *generator) known(e extent.Extent) count { return count{g.ints(e.Max()), e} }

// find returns an extent that is a constant or that of some tensor; ok is false for others.
func (g *generator) find(e extent.Extent) (c count, ok bool) {
	if !e.IsOpen() {
		return g.known(e), true
	}
	t, ok := g.any(func(t tensor) bool { return slices.Contains(t.dims.Extents(), e) })
	if !ok {
		return count{}, false
	}
	return g.size(t, slices.Index(t.dims.Extents(), e)), true
}

func (g *generator) apply(op string, a, b count, e extent.Extent) count {
	return count{g.apart(op, array.Int64, extent.Fixed(1), []string{a.name, b.name}).name, e}
}

func (g *generator) sum(a, b count) count        { return g.apply("Add", a, b, a.of.Plus(b.of)) }
func (g *generator) difference(a, b count) count { return g.apply("Sub", a, b, a.of.Minus(b.of)) }
func (g *generator) product(a, b count) count    { return g.apply("Mul", a, b, a.of.Times(b.of)) }

func (g *generator) over(a count, n int64) count {
	return g.apply("Div", a, g.known(extent.Of(n)), a.of.Over(extent.Of(n)))
}

// scalarOf returns an extent as a scalar.
func (g *generator) scalarOf(c count) string {
	return g.apart("Squeeze", array.Int64, extent.Fixed(), []string{c.name, g.ints(0)}).name
}

// target joins extents to a shape.
func (g *generator) target(counts ...count) string {
	if len(counts) == 0 {
		return g.constant(array.New(array.Int64, 0))
	}
	var names []string
	var known []int64
	open := false
	for _, c := range counts {
		names, known, open = append(names, c.name), append(known, c.of.Max()), open || c.of.IsOpen()
	}
	if !open {
		return g.ints(known...)
	}
	return g.apart("Concat", array.Int64, extent.Fixed(int64(len(counts))), names, integer("axis", 0)).name
}

// targetOf returns a shape; ok is false if no value has one of its extents.
func (g *generator) targetOf(shape extent.Shape) (name string, ok bool) {
	if t, ok := g.any(func(t tensor) bool { return t.dims.Equal(shape) }); ok && shape.IsOpen() && g.rng.IntN(2) == 0 {
		return g.apart("Shape", array.Int64, extent.Fixed(int64(shape.Rank())), single(t)).name, true
	}
	var counts []count
	for _, e := range shape.Extents() {
		c, ok := g.find(e)
		if !ok {
			return "", false
		}
		counts = append(counts, c)
	}
	return g.target(counts...), true
}

// reshaped adds a Reshape of t to another shape. Some extents are written as 0 or -1, unless there may be no elements.
func (g *generator) reshaped(t tensor, shape extent.Shape) (y tensor, ok bool) {
	rest, full := -1, isFull(t) // the axis of -1
	if full && g.rng.IntN(2) == 0 && shape.Rank() > 0 {
		rest = g.rng.IntN(shape.Rank())
	}
	var counts []count
	for k, e := range shape.Extents() {
		c, found := count{}, false
		if k != rest {
			c, found = g.find(e)
		}
		switch {
		case k == rest, !found && rest < 0 && full:
			rest = k
			c = count{g.ints(-1), extent.Of(-1)}
		case k < t.rank() && t.dims.At(k) == e && full && g.rng.IntN(3) == 0:
			c = count{g.ints(0), extent.Of(0)}
		case !found:
			return tensor{}, false
		}
		counts = append(counts, c)
	}
	var attributes []*onnx.Attribute
	if !full {
		attributes = append(attributes, integer("allowzero", 1))
	}
	return g.nodeOf("Reshape", t.dtype, shape, []string{t.name, g.target(counts...)}, attributes...), true
}

// reshape joins, divides, adds or removes axes.
func (g *generator) reshape() {
	t, ok := g.any(anything)
	if !ok {
		return
	}
	all := slices.Clone(t.dims.Extents())
	for range 1 + g.rng.IntN(2) {
		switch k := g.rng.IntN(max(1, len(all))); g.rng.IntN(5) {
		case 0:
			all = []extent.Extent{t.dims.Elements()}
		case 1:
			if k+1 < len(all) {
				all = slices.Replace(all, k, k+2, all[k].Times(all[k+1]))
			}
		case 2:
			all = slices.Insert(all, k, extent.Of(1))
		default:
			all = g.divided(all, k)
		}
	}
	if len(all) < 7 {
		g.reshaped(t, extent.ShapeOf(all...))
	}
}

// divided divides an axis by a small number or by the extent of another value, if that is possible.
func (g *generator) divided(all []extent.Extent, k int) []extent.Extent {
	if len(all) == 0 {
		return all
	}
	by := []extent.Extent{extent.Of(2), extent.Of(3), extent.Of(4), extent.Of(5)}
	for _, t := range g.tensors {
		for _, e := range t.dims.Extents() {
			if e.IsOpen() && e.Min() > 0 {
				by = append(by, e)
			}
		}
	}
	for range 8 {
		f := pick(g, by)
		if q := all[k].Over(f); q.Times(f) == all[k] {
			pair := []extent.Extent{f, q}
			if g.rng.IntN(2) == 0 {
				slices.Reverse(pair)
			}
			return slices.Replace(all, k, k+1, pair...)
		}
	}
	return all
}

// anExtent returns a small open extent of some value, or a constant.
func (g *generator) anExtent() count {
	isSmall := func(e extent.Extent) bool { return e.IsOpen() && e.Max() <= 16 }
	t, ok := g.any(func(t tensor) bool { return slices.ContainsFunc(t.dims.Extents(), isSmall) })
	if !ok || g.rng.IntN(4) == 0 {
		return g.known(extent.Of(1 + int64(g.rng.IntN(5))))
	}
	c := g.size(t, slices.IndexFunc(t.dims.Extents(), isSmall))
	switch g.rng.IntN(6) {
	case 0:
		return g.sum(c, g.known(extent.Of(1)))
	case 1:
		if c.of.Min() > 1 {
			return g.over(c, 2)
		}
	case 2:
		return g.product(c, g.known(extent.Of(2)))
	}
	return c
}

// expand adds an Expand of axes of extent one, and maybe a new axis.
func (g *generator) expand() {
	t, ok := g.any(anything)
	if !ok {
		return
	}
	shape := slices.Clone(t.dims.Extents())
	var counts []count
	for k, e := range shape {
		var c count
		switch {
		case e.Is(1) && g.rng.IntN(3) > 0:
			c = g.anExtent()
		case g.rng.IntN(4) == 0 && !(e.IsOpen() && e.Min() < 1): // 1 leaves an axis as it is
			c = g.known(extent.Of(1))
		default:
			c, _ = g.find(e)
		}
		counts = append(counts, c)
		if e.Is(1) {
			shape[k] = c.of
		}
	}
	if g.rng.IntN(2) == 0 || len(shape) == 0 {
		c := g.anExtent()
		counts, shape = append([]count{c}, counts...), append([]extent.Extent{c.of}, shape...)
	}
	if s := extent.ShapeOf(shape...); fits(s.Max()) && len(shape) < 6 {
		g.nodeOf("Expand", t.dtype, s, []string{t.name, g.target(counts...)})
	}
}

func (g *generator) tile() {
	t, ok := g.any(hasAxis)
	if !ok {
		return
	}
	axis := g.rng.IntN(t.rank())
	var counts []count
	shape := t.dims
	for k := range t.rank() {
		c := g.known(extent.Of(1))
		if k == axis {
			c = g.anExtent()
			shape = shape.With(k, shape.At(k).Times(c.of))
		}
		counts = append(counts, c)
	}
	if fits(shape.Max()) {
		g.nodeOf("Tile", t.dtype, shape, []string{t.name, g.target(counts...)})
	}
}

// filled adds a constant of another value's shape.
func (g *generator) filled() {
	t, ok := g.any(isNumber)
	if !ok {
		return
	}
	shape, ok := g.targetOf(t.dims)
	if !ok {
		return
	}
	value := g.constant(g.random(t.dtype, []int64{1}))
	y := g.nodeOf("Expand", t.dtype, t.dims, []string{value, shape})
	if g.rng.IntN(2) == 0 {
		y = g.nodeOf("ConstantOfShape", array.Float32, t.dims, []string{shape})
		y = g.nodeOf("Cast", t.dtype, t.dims, single(y), integer("to", int64(onnx.DataType(t.dtype))))
	}
	g.nodeOf(pick(g, []string{"Add", "Mul", "Max"}), t.dtype, t.dims, []string{t.name, y.name})
}

// ramp returns 0, 1, ... below an extent.
func (g *generator) ramp(c count) tensor {
	return g.nodeOf("Range", array.Int64, extent.ShapeOf(c.of), []string{g.whole(0), g.scalarOf(c), g.whole(1)})
}

// positions adds the positions along the last axis to a value, as numbers or in the embedding of them.
func (g *generator) positions() {
	t, ok := g.any(func(t tensor) bool { return isNumber(t) && hasAxis(t) })
	if !ok {
		return
	}
	axis := g.rng.IntN(t.rank())
	n := t.dims.At(axis)
	r := g.ramp(g.size(t, axis))
	if axis == t.rank()-2 && isSingle(t) && !t.dims.At(axis+1).IsOpen() {
		table := g.constant(g.random(t.dtype, []int64{n.Max() + int64(g.rng.IntN(3)), t.shape[axis+1]}))
		e := g.nodeOf("Gather", t.dtype, t.dims.Slice(axis, axis+2), []string{table, r.name})
		g.nodeOf("Add", t.dtype, t.dims, []string{t.name, e.name})
		return
	}
	r = g.nodeOf("Cast", t.dtype, r.dims, single(r), integer("to", int64(onnx.DataType(t.dtype))))
	if isFloat(t) {
		by := array.New(t.dtype)
		by.SetFloat(0, 0.125)
		r = g.nodeOf("Mul", t.dtype, r.dims, []string{r.name, g.constant(by)})
	}
	if behind := t.rank() - 1 - axis; behind > 0 {
		var axes []int64
		shape := []extent.Extent{n}
		for k := range behind {
			axes, shape = append(axes, int64(k+1)), append(shape, extent.Of(1))
		}
		r = g.nodeOf("Unsqueeze", t.dtype, extent.ShapeOf(shape...), []string{r.name, g.ints(axes...)})
	}
	g.nodeOf(pick(g, []string{"Add", "Mul"}), t.dtype, t.dims, []string{t.name, r.name})
}

// mask replaces the elements of the last two axes where a comparison of positions does not hold.
func (g *generator) mask() {
	t, ok := g.any(func(t tensor) bool { return isNumber(t) && t.rank() > 1 })
	if !ok {
		return
	}
	k := t.rank() - 2
	if isSingle(t) && g.rng.IntN(4) == 0 {
		g.nodeOf("Trilu", t.dtype, t.dims, []string{t.name, g.whole(int64(g.rng.IntN(3) - 1))}, integer("upper", int64(g.rng.IntN(2))))
		return
	}
	g.nodeOf("Where", t.dtype, t.dims, []string{g.triangle(g.size(t, k), g.size(t, k+1)).name, t.name, g.constant(g.random(t.dtype, nil))})
}

// triangle compares the positions of rows and columns.
func (g *generator) triangle(rows, columns count) tensor {
	row, column := g.ramp(rows), g.ramp(columns)
	row = g.nodeOf("Unsqueeze", array.Int64, extent.ShapeOf(rows.of, extent.Of(1)), []string{row.name, g.ints(1)})
	if g.rng.IntN(2) == 0 { // rows are the last ones
		row = g.nodeOf("Add", array.Int64, row.dims, []string{row.name, g.difference(columns, rows).name})
	}
	return g.nodeOf(pick(g, []string{"LessOrEqual", "Less", "Equal", "Greater"}), array.Bool, extent.ShapeOf(rows.of, columns.of), []string{column.name, row.name})
}

// resize enlarges or shrinks an image, to the size of another one if there is one.
func (g *generator) resize() {
	t, ok := g.any(func(t tensor) bool { return isSingle(t) && t.rank() == 4 && isFull(t) })
	if !ok {
		return
	}
	mode := pick(g, []string{"nearest", "nearest", "linear"})
	where := text("coordinate_transformation_mode", pick(g, []string{"asymmetric", "half_pixel", "align_corners"}))
	attributes := []*onnx.Attribute{text("mode", mode), where, text("nearest_mode", pick(g, []string{"floor", "round_prefer_floor"}))}
	if g.rng.IntN(3) == 0 {
		shape := t.dims
		for k := 2; k < 4; k++ {
			shape = shape.With(k, shape.At(k).Times(extent.Of(2)))
		}
		if fits(shape.Max()) {
			scales := g.constant(array.FromFloat32([]float32{1, 1, 2, 2}, 4))
			g.nodeOf("Resize", t.dtype, shape, []string{t.name, "", scales}, attributes...)
		}
		return
	}
	rows, columns := g.anExtent(), g.anExtent()
	if other, ok := g.any(func(o tensor) bool { return o.rank() == 4 && isFull(o) && o.name != t.name }); ok && g.rng.IntN(3) > 0 {
		rows, columns = g.size(other, 2), g.size(other, 3)
	}
	shape := extent.ShapeOf(t.dims.At(0), t.dims.At(1), rows.of, columns.of)
	if !fits(shape.Max()) || rows.of.Min() < 1 || columns.of.Min() < 1 {
		return
	}
	g.nodeOf("Resize", t.dtype, shape, []string{t.name, "", "", g.target(g.size(t, 0), g.size(t, 1), rows, columns)}, attributes...)
}

// attention adds attention of a value, (batch, positions, channels), over itself or another value.
func (g *generator) attention() {
	is := func(t tensor) bool {
		return isSingle(t) && t.rank() == 3 && isFull(t) && !t.dims.At(2).IsOpen() && t.shape[2] > 1
	}
	q, ok := g.any(is)
	if !ok {
		return
	}
	k, _ := g.any(func(t tensor) bool { return is(t) && t.dims.At(0) == q.dims.At(0) && t.dims.At(2) == q.dims.At(2) })
	batch, queries, keys, width := q.dims.At(0), q.dims.At(1), k.dims.At(1), q.dims.At(2)
	heads := extent.Of(1)
	if q.shape[2]%2 == 0 {
		heads = extent.Of(2)
	}
	head := width.Over(heads)
	split := func(t tensor, n extent.Extent, order ...int) (tensor, bool) { // (batch, heads, positions, head) in some order
		t, ok := g.reshaped(t, extent.ShapeOf(batch, n, heads, head))
		perm := make([]int64, len(order))
		for k, axis := range order {
			perm[k] = int64(axis)
		}
		return g.nodeOf("Transpose", t.dtype, t.dims.Permuted(order), single(t), ints("perm", perm...)), ok
	}
	scores := extent.ShapeOf(batch, heads, queries, keys)
	if !fits(scores.Max()) {
		return
	}
	a, okA := split(q, queries, 0, 2, 1, 3)
	b, okB := split(k, keys, 0, 2, 3, 1)
	v, okV := split(k, keys, 0, 2, 1, 3)
	if !okA || !okB || !okV {
		return
	}
	s := g.nodeOf("MatMul", q.dtype, scores, []string{a.name, b.name})
	s = g.nodeOf("Mul", q.dtype, scores, []string{s.name, g.scalar(0.25)})
	if g.rng.IntN(2) == 0 {
		s = g.nodeOf("Where", q.dtype, scores, []string{g.triangle(g.size(q, 1), g.size(k, 1)).name, s.name, g.scalar(pick(g, []float64{-1e4, -3e38}))})
	}
	p := g.nodeOf("Softmax", q.dtype, scores, single(s), integer("axis", -1))
	y := g.nodeOf("MatMul", q.dtype, a.dims, []string{p.name, v.name})
	y = g.nodeOf("Transpose", q.dtype, y.dims.Permuted([]int{0, 2, 1, 3}), single(y), ints("perm", 0, 2, 1, 3))
	g.reshaped(y, q.dims)
}

// selectRange gathers elements along an axis by a range of positions, forward or backward.
func (g *generator) selectRange() {
	t, ok := g.any(func(t tensor) bool { return hasAxis(t) && isFull(t) })
	if !ok {
		return
	}
	axis := g.rng.IntN(t.rank())
	c := g.anExtent()
	if !c.of.AtMost(t.dims.At(axis)) {
		c = g.size(t, axis)
	}
	at := g.ramp(c)
	if g.rng.IntN(2) == 0 {
		at = g.nodeOf("Sub", array.Int64, at.dims, []string{g.difference(g.size(t, axis), g.known(extent.Of(1))).name, at.name})
	}
	g.nodeOf("Gather", t.dtype, t.dims.With(axis, c.of), []string{t.name, at.name}, integer("axis", int64(axis)))
}

// isExact reports whether a tensor's elements have no rounding errors, which would change their order.
func (g *generator) isExact(t tensor) bool {
	_, isInput := g.inputs[t.name]
	return isNumber(t) && (isInput || !isFloat(t)) && hasAxis(t) && isFull(t)
}

func (g *generator) largest() {
	t, ok := g.any(g.isExact)
	if !ok {
		return
	}
	axis := g.rng.IntN(t.rank())
	n := t.dims.At(axis)
	k := g.anExtent()
	if !k.of.AtMost(n) || k.of.Min() < 1 {
		k = g.known(extent.Of(1 + int64(g.rng.IntN(int(n.Min())))))
	}
	shape := t.dims.With(axis, k.of)
	g.nodeOf("TopK", t.dtype, shape, []string{t.name, k.name}, integer("axis", int64(axis)), integer("largest", int64(g.rng.IntN(2))))
	places := g.valueOf(array.Int64, shape)
	last := g.graph.Nodes[len(g.graph.Nodes)-1]
	last.Outputs = append(last.Outputs, places.name)
	g.tensors = append(g.tensors, places)
	if g.rng.IntN(2) == 0 {
		g.nodeOf("GatherElements", t.dtype, shape, []string{t.name, places.name}, integer("axis", int64(axis)))
	}
}

func (g *generator) cumSum() {
	t, ok := g.any(func(t tensor) bool { return hasAxis(t) && isNumber(t) })
	if !ok {
		return
	}
	axis := g.whole(int64(g.rng.IntN(t.rank())))
	g.nodeOf("CumSum", t.dtype, t.dims, []string{t.name, axis}, integer("exclusive", int64(g.rng.IntN(2))), integer("reverse", int64(g.rng.IntN(2))))
}

func (g *generator) argMax() {
	t, ok := g.any(func(t tensor) bool { return g.isExact(t) && t.dtype != array.Int64 })
	if !ok {
		return
	}
	axis := g.rng.IntN(t.rank())
	g.nodeOf(pick(g, []string{"ArgMax", "ArgMin"}), array.Int64, t.dims.With(axis, extent.Of(1)), single(t), integer("axis", int64(axis)))
}

// groupNorm normalises the channels of an image in groups, as it is exported.
func (g *generator) groupNorm() {
	t, ok := g.any(func(t tensor) bool { return isImage(t) && t.shape[1]%2 == 0 })
	if !ok {
		return
	}
	groups := extent.Of(2)
	x, ok := g.reshaped(t, extent.ShapeOf(t.dims.At(0), groups, t.dims.Slice(1, 4).Elements().Over(groups)))
	if !ok {
		return
	}
	one, zero := array.FromFloat32([]float32{1, 0.5}, 2), array.New(array.Float32, 2)
	x = g.nodeOf("InstanceNormalization", x.dtype, x.dims, []string{x.name, g.constant(one), g.constant(zero)})
	shape := g.apart("Shape", array.Int64, extent.Fixed(4), single(t))
	g.nodeOf("Reshape", x.dtype, t.dims, []string{x.name, shape.name})
}

// rotate exchanges the halves of an axis.
func (g *generator) rotate() {
	t, ok := g.any(func(t tensor) bool { return hasAxis(t) && isNumber(t) && t.dims.At(t.rank()-1).Min() > 1 })
	if !ok {
		return
	}
	axis := t.rank() - 1
	half := g.over(g.size(t, axis), 2)
	at := g.ints(int64(axis))
	a := g.nodeOf("Slice", t.dtype, t.dims.With(axis, half.of), []string{t.name, g.ints(0), half.name, at})
	b := g.nodeOf("Slice", t.dtype, t.dims.With(axis, t.dims.At(axis).Minus(half.of)), []string{t.name, half.name, g.ints(1 << 60), at})
	b = g.nodeOf("Neg", t.dtype, b.dims, single(b))
	g.nodeOf("Concat", t.dtype, t.dims, []string{b.name, a.name}, integer("axis", int64(axis)))
}

// align pads an axis to a multiple of a number, and may divide it into so many parts.
func (g *generator) align() {
	t, ok := g.any(func(t tensor) bool { return hasAxis(t) && isSingle(t) && isFull(t) })
	if !ok {
		return
	}
	axis, by := g.rng.IntN(t.rank()), 2+int64(g.rng.IntN(3))
	n := t.dims.At(axis)
	size, unit := g.size(t, axis), g.known(extent.Of(by))
	over := g.apply("Mod", size, unit, n.Mod(extent.Of(by)))
	missing := g.apply("Mod", g.difference(unit, over), unit, extent.Of(by).Minus(over.of).Mod(extent.Of(by)))
	pads := make([]count, 2*t.rank())
	for k := range pads {
		pads[k] = g.known(extent.Of(0))
	}
	pads[t.rank()+axis] = missing
	shape := t.dims.With(axis, n.Plus(missing.of))
	if !fits(shape.Max()) {
		return
	}
	y := g.nodeOf("Pad", t.dtype, shape, []string{t.name, g.target(pads...)})
	parts := slices.Clone(shape.Extents())
	if t.rank() < 5 && g.rng.IntN(2) == 0 {
		g.reshaped(y, extent.ShapeOf(slices.Replace(parts, axis, axis+1, parts[axis].Over(extent.Of(by)), extent.Of(by))...))
	}
}
