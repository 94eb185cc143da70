package graphfuzz

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// selection adds, to a quarter of the graphs, outputs whose extents depend on data. They only read inputs, whose
// elements are exact, so that rounding does not affect the selection.
func (g *generator) selection(seed uint64) {
	g.rng = rand.New(rand.NewPCG(seed, 1))
	if g.rng.IntN(4) > 0 {
		return
	}
	inputs := slices.DeleteFunc(slices.Clone(g.tensors), func(t tensor) bool {
		return g.inputs[t.name] == nil || t.rank() == 0 || array.Elements(t.shape) > maxElements/4 || !isNumber(t) || !isFull(t)
	})
	if len(inputs) == 0 || g.rng.IntN(3) == 0 {
		g.suppression()
		return
	}
	pick(g, []func(tensor){g.nonZero, g.compress, g.unique, g.topK})(pick(g, inputs))
}

// open adds a node whose results are outputs. Extents of -1 depend on data.
func (g *generator) open(op string, inputs []string, results []tensor, attributes ...*onnx.Attribute) {
	n := &onnx.Node{Name: "n_" + results[0].name, Op: op, Inputs: inputs, Attributes: attributes}
	for _, t := range results {
		n.Outputs = append(n.Outputs, t.name)
		v := info(t)
		for k, e := range t.dims.Extents() {
			if e.Is(-1) {
				v.Shape[k].Param = fmt.Sprint(t.name, "_", k)
			}
		}
		g.graph.Outputs = append(g.graph.Outputs, v)
	}
	g.graph.Nodes = append(g.graph.Nodes, n)
}

func (g *generator) nonZero(t tensor) {
	if t.dtype == array.Float64 { // unsupported by ONNX Runtime
		t = g.nodeOf("Cast", array.Float32, t.dims, single(t), integer("to", int64(onnx.DataType(array.Float32))))
	}
	g.open("NonZero", single(t), []tensor{g.value(array.Int64, []int64{int64(t.rank()), -1})})
}

// above returns a tensor's elements as a vector, and a condition that selects positive ones.
func (g *generator) above(t tensor) (flat, condition tensor) {
	all := extent.ShapeOf(t.dims.Elements())
	flat = g.nodeOf("Reshape", t.dtype, all, []string{t.name, g.ints(-1)})
	return flat, g.nodeOf("Greater", array.Bool, all, []string{flat.name, g.constant(array.New(t.dtype))})
}

// compress selects the positive elements and negates them.
func (g *generator) compress(t tensor) {
	flat, condition := g.above(t)
	taken := g.node("Compress", t.dtype, []int64{-1}, []string{flat.name, condition.name}, integer("axis", 0))
	g.open("Neg", single(taken), []tensor{g.value(t.dtype, []int64{-1})})
}

func (g *generator) unique(t tensor) {
	if t.dtype == array.Int32 { // unsupported by ONNX Runtime
		t = g.nodeOf("Cast", array.Int64, t.dims, single(t), integer("to", int64(onnx.DataType(array.Int64))))
	}
	attributes := []*onnx.Attribute{integer("sorted", int64(g.rng.IntN(2)))}
	shape, size := extent.Fixed(-1), t.dims.Elements()
	if g.rng.IntN(2) == 0 {
		axis := g.rng.IntN(t.rank())
		attributes = append(attributes, integer("axis", int64(axis)))
		shape, size = t.dims.With(axis, extent.Of(-1)), t.dims.At(axis)
	}
	g.open("Unique", single(t), []tensor{
		g.valueOf(t.dtype, shape), g.value(array.Int64, []int64{-1}), g.valueOf(array.Int64, extent.ShapeOf(size)), g.value(array.Int64, []int64{-1}),
	}, attributes...)
}

// topK selects the k largest elements, where k is the number of positive ones.
func (g *generator) topK(t tensor) {
	flat, condition := g.above(t)
	ones := g.nodeOf("Cast", array.Int64, condition.dims, single(condition), integer("to", int64(onnx.DataType(array.Int64))))
	k := g.node("ReduceSum", array.Int64, []int64{1}, []string{ones.name, g.ints(0)}, integer("keepdims", 1))
	g.open("TopK", []string{flat.name, k.name}, []tensor{g.value(t.dtype, []int64{-1}), g.value(array.Int64, []int64{-1})},
		integer("largest", int64(g.rng.IntN(2))))
}

// suppression adds a non-maximum suppression with new boxes and scores, and sometimes with the number of boxes as an
// input.
func (g *generator) suppression() {
	batch, classes, count := g.rows(2), g.rows(3), g.rows(20)
	boxes, scores := g.add(array.Float32, batch, count, extent.Of(4)), g.add(array.Float32, batch, classes, count)
	most := array.New(array.Int64, 1)
	most.SetInt(0, int64(g.rng.IntN(8)))
	var wanted string
	if g.rng.IntN(2) == 0 {
		wanted = g.constant(most)
	} else {
		wanted = g.add(array.Int64, extent.Of(1)).name
		g.inputs[wanted] = most
	}
	limit := func(v float64) string {
		a := array.New(array.Float32, 1)
		a.SetFloat(0, v)
		return g.constant(a)
	}
	g.open("NonMaxSuppression", []string{boxes.name, scores.name, wanted, limit(float64(g.rng.IntN(4)) / 4), limit(-0.5)},
		[]tensor{g.value(array.Int64, []int64{-1, 3})}, integer("center_point_box", int64(g.rng.IntN(2))))
}
