package graphfuzz

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// Symbols of a decoder's open extents: new and past positions.
const (
	StepExtent = "sequence"
	PastExtent = "past"
)

// Decoder is a model that reads new positions after past ones.
type Decoder struct {
	*Case
	// Fresh is the input of new positions, of shape (1, positions, width).
	Fresh string
	// Kept lists the inputs of past keys and values. Present lists the outputs that extend them, in the same order.
	// Along is their axis of positions.
	Kept, Present []string
	Along         int
}

// attention holds the random parameters of an attention layer.
type attention struct {
	// shared is the number of query heads per key head.
	heads, shared, head int64
	causal              bool
	scale               string // Mul, Div or none
}

// GenerateDecoder draws a decoder of attention layers. It keeps keys and values with the axes of heads or of
// positions first. The result depends only on the seed. Inputs have most new and most past positions.
func GenerateDecoder(seed uint64, most int64) *Decoder {
	g := newGenerator("decoder", seed, 3)
	d := &Decoder{Case: &Case{Seed: seed, Inputs: g.inputs}, Along: 1 + g.rng.IntN(2)}
	width := pick(g, []int64{4, 6, 16})
	x := g.openInput(1, []int64{1, most, width}, StepExtent)
	d.Fresh = x.name
	for range 1 + g.rng.IntN(2) {
		a := attention{pick(g, []int64{1, 2, 3}), pick(g, []int64{1, 1, 2, 3}), pick(g, []int64{2, 4, 5, 8}), g.rng.IntN(2) == 0, pick(g, []string{"", "Mul", "Div"})}
		x = g.attend(d, x, a)
	}
	g.graph.Outputs = append(g.graph.Outputs, info(x))
	d.Model = &onnx.Model{IRVersion: 9, ProducerName: "graphfuzz", Opsets: opsets(), Graph: g.graph}
	return d
}

// openInput adds an input with a symbolic extent along an axis.
func (g *generator) openInput(axis int, shape []int64, symbol string) tensor {
	t := g.value(array.Float32, shape)
	v := info(t)
	v.Shape[axis] = onnx.Dim{Value: -1, Param: symbol}
	g.graph.Inputs = append(g.graph.Inputs, v)
	g.inputs[t.name] = g.random(array.Float32, shape)
	return t
}

// attend adds an attention layer to x, (1, positions, width), with its own keys and values.
func (g *generator) attend(d *Decoder, x tensor, a attention) tensor {
	steps, width := x.shape[1], x.shape[2]
	heads := func(of int64) tensor { // (1, positions, heads, head)
		flat := g.node("MatMul", x.dtype, []int64{1, steps, of * a.head}, []string{x.name, g.small(width, of*a.head)})
		return g.node("Reshape", x.dtype, []int64{1, steps, of, a.head}, []string{flat.name, g.ints(1, -1, of, a.head)})
	}
	k, v := g.keep(d, heads(a.heads), a), g.keep(d, heads(a.heads), a) // (1, heads, past+positions, head)
	q := heads(a.heads * a.shared)
	q = g.node("Transpose", q.dtype, []int64{1, a.heads * a.shared, steps, a.head}, []string{q.name}, ints("perm", 0, 2, 1, 3))
	if a.shared > 1 { // (1, heads, shared, positions, head); the queries of each group share keys
		q = g.node("Reshape", q.dtype, []int64{1, a.heads, a.shared, steps, a.head}, []string{q.name, g.ints(1, a.heads, a.shared, -1, a.head)})
		k = g.node("Unsqueeze", k.dtype, []int64{1, a.heads, 1, k.shape[2], a.head}, []string{k.name, g.ints(2)})
		v = g.node("Unsqueeze", v.dtype, k.shape, []string{v.name, g.ints(2)})
	}
	y := g.weighted(d, q, k, v, a)
	if a.shared > 1 {
		y = g.node("Reshape", y.dtype, []int64{1, a.heads * a.shared, steps, a.head}, []string{y.name, g.ints(1, a.heads*a.shared, -1, a.head)})
	}
	y = g.node("Transpose", y.dtype, []int64{1, steps, a.heads * a.shared, a.head}, []string{y.name}, ints("perm", 0, 2, 1, 3))
	y = g.node("Reshape", y.dtype, []int64{1, steps, a.heads * a.shared * a.head}, []string{y.name, g.ints(1, -1, a.heads*a.shared*a.head)})
	y = g.node("MatMul", y.dtype, []int64{1, steps, width}, []string{y.name, g.small(a.heads*a.shared*a.head, width)})
	if g.rng.IntN(2) == 0 {
		y = g.node("Add", y.dtype, y.shape, []string{x.name, y.name})
	}
	return y
}

// keep appends new keys or values, (1, positions, heads, head), to the past ones of a new input, and returns all of
// them, (1, heads, past+positions, head).
func (g *generator) keep(d *Decoder, fresh tensor, a attention) tensor {
	steps := fresh.shape[1]
	shape, turned := []int64{1, 2 * steps, a.heads, a.head}, []int64{1, a.heads, 2 * steps, a.head}
	if d.Along == 2 {
		shape = turned
		fresh = g.node("Transpose", fresh.dtype, []int64{1, a.heads, steps, a.head}, []string{fresh.name}, ints("perm", 0, 2, 1, 3))
	}
	before := append([]int64{}, shape...)
	before[d.Along] = steps
	kept := g.openInput(d.Along, before, PastExtent)
	all := g.node("Concat", fresh.dtype, shape, []string{kept.name, fresh.name}, integer("axis", int64(d.Along)))
	present := info(all)
	present.Shape[d.Along] = onnx.Dim{Value: -1, Param: StepExtent + " + " + PastExtent}
	g.graph.Outputs = append(g.graph.Outputs, present)
	d.Kept, d.Present = append(d.Kept, kept.name), append(d.Present, all.name)
	if d.Along == 2 {
		return all
	}
	return g.node("Transpose", all.dtype, turned, []string{all.name}, ints("perm", 0, 2, 1, 3))
}

// weighted adds the attention-weighted sum of values.
func (g *generator) weighted(d *Decoder, q, k, v tensor, a attention) tensor {
	rank := q.rank()
	order := []int64{0, 1, 3, 2}
	if rank == 5 {
		order = []int64{0, 1, 2, 4, 3}
	}
	positions := append(append([]int64{}, k.shape[:rank-2]...), a.head, k.shape[rank-2])
	turned := g.node("Transpose", k.dtype, positions, []string{k.name}, ints("perm", order...))
	shape := append(append([]int64{}, q.shape[:rank-1]...), k.shape[rank-2])
	scores := g.node("MatMul", q.dtype, shape, []string{q.name, turned.name})
	if a.scale != "" {
		scores = g.node(a.scale, q.dtype, shape, []string{scores.name, g.scalar(pick(g, []float64{0.5, 2, 1.5}))})
	}
	if a.causal {
		scores = g.node("Where", q.dtype, shape, []string{g.visible(d), scores.name, g.scalar(-1e30)})
	}
	weights := g.node("Softmax", q.dtype, shape, []string{scores.name}, integer("axis", -1))
	return g.node("MatMul", q.dtype, q.shape, []string{weights.name, v.name})
}

// visible returns a mask that is true where a position may attend to another: to itself and earlier ones.
func (g *generator) visible(d *Decoder) string {
	extent := func(of string, axis int64) string {
		shape := g.node("Shape", array.Int64, []int64{4}, []string{of})
		return g.node("Gather", array.Int64, nil, []string{shape.name, g.whole(axis)}, integer("axis", 0)).name
	}
	count, steps := extent(d.Kept[0], int64(d.Along)), extent(d.Fresh, 1)
	total := g.node("Add", array.Int64, nil, []string{count, steps}).name
	most := d.Inputs[d.Fresh].Shape[1]
	column := g.node("Range", array.Int64, []int64{most}, []string{count, total, g.whole(1)})
	row := g.node("Range", array.Int64, []int64{2 * most}, []string{g.whole(0), total, g.whole(1)})
	column = g.node("Unsqueeze", array.Int64, []int64{most, 1}, []string{column.name, g.ints(1)})
	return g.node("LessOrEqual", array.Bool, []int64{most, 2 * most}, []string{row.name, column.name}).name
}

// small returns weights that preserve the magnitude of sums.
func (g *generator) small(rows, columns int64) string {
	a := g.random(array.Float32, []int64{rows, columns})
	for i := range a.Len() {
		a.SetFloat(i, a.Float(i)/4)
	}
	return g.constant(a)
}

func (g *generator) scalar(v float64) string {
	a := array.New(array.Float32)
	a.SetFloat(0, v)
	return g.constant(a)
}

func (g *generator) whole(v int64) string {
	a := array.New(array.Int64)
	a.SetInt(0, v)
	return g.constant(a)
}
