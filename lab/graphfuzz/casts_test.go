package graphfuzz

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// unusual lists numbers that lie between those of 16 bits, overflow there, or are not finite.
var unusual = []float64{
	0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 70000, 65520, 65519, -65504, 3e38, 1e-40, 3e-8, 2049, 2051,
	1 + 0x1p-11, 1 + 3*0x1p-11, 1 + 0x1p-8, 1 + 3*0x1p-8, 464, 448, 249, 1.0 / 3, -0.1, 5.5, -2.5, 127.5, -128.5,
}

// casts adds, to a third of the graphs, a chain of casts and of operators that round nothing else, which has a unique
// correct value. Its input is often unusual. ONNX Runtime computes operators of 16 bits in float32, reductions of NaN
// by the position of NaN, and some overflows of float8 as NaN.
func (g *generator) casts(seed uint64) {
	g.rng = rand.New(rand.NewPCG(seed, 4))
	if g.rng.IntN(3) > 0 {
		return
	}
	x := g.add(array.Float32, g.rows(6), g.rows(40))
	for i, a := int64(0), g.inputs[x.name]; i < a.Len(); i++ {
		a.SetFloat(i, g.rng.NormFloat64()*math.Ldexp(1, g.rng.IntN(20)-8))
		if g.rng.IntN(4) == 0 {
			a.SetFloat(i, pick(g, unusual))
		}
	}
	unlike := false
	for range 1 + g.rng.IntN(3) {
		var narrow bool
		x, narrow = g.converted(x)
		unlike = unlike || narrow
		for range g.rng.IntN(4) {
			x = g.moved(x)
			unlike = unlike || !isFloat(x)
		}
	}
	if g.rng.IntN(3) == 0 { // what a row makes of its numbers
		unlike = true
		x = g.nodeOf(pick(g, []string{"ReduceMax", "ReduceMin"}), x.dtype, x.dims.With(1, extent.Of(1)), []string{x.name, g.ints(1)})
	}
	g.shown(x, unlike)
}

// converted adds a cast to another floating-point type, maybe by way of one with 8 bits that does not saturate.
func (g *generator) converted(x tensor) (to tensor, overflows bool) {
	cast := func(x tensor, d array.DType, code int64, more ...*onnx.Attribute) tensor {
		return g.nodeOf("Cast", d, x.dims, single(x), append(more, integer("to", code))...)
	}
	if g.rng.IntN(5) == 0 {
		saturate := int64(g.rng.IntN(2))
		x = cast(x, array.Float32, 17+int64(g.rng.IntN(4)), integer("saturate", saturate))
		return cast(x, array.Float32, int64(onnx.DataType(array.Float32))), saturate == 0
	}
	d := pick(g, []array.DType{array.Float16, array.Float16, array.BFloat16, array.Float32, array.Float64})
	if g.rng.IntN(4) == 0 {
		like := array.New(d)
		like.SetFloat(0, 1)
		return g.nodeOf("CastLike", d, x.dims, []string{x.name, g.constant(like)}), false
	}
	return cast(x, d, int64(onnx.DataType(d))), false
}

// moved adds an operator whose results are elements of its operands, or have as many bits.
func (g *generator) moved(x tensor) tensor {
	number := func() string {
		a := array.New(x.dtype)
		a.SetFloat(0, pick(g, []float64{0, 1, -3, 0.3, 100, math.Inf(1), math.Inf(-1)}))
		return g.constant(a)
	}
	switch g.rng.IntN(8) {
	case 0:
		return g.nodeOf(pick(g, []string{"Max", "Min"}), x.dtype, x.dims, []string{x.name, number()})
	case 1:
		mask := g.random(array.Bool, slices.Clone(x.shape))
		if x.dims.IsOpen() {
			mask = g.random(array.Bool, []int64{1})
		}
		return g.nodeOf("Where", x.dtype, x.dims, []string{g.constant(mask), x.name, number()})
	case 2:
		return g.nodeOf("Transpose", x.dtype, x.dims.Permuted([]int{1, 0}), single(x), ints("perm", 1, 0))
	case 3:
		return g.nodeOf("Concat", x.dtype, x.dims.With(1, x.dims.At(1).Times(extent.Of(2))), []string{x.name, x.name}, integer("axis", 1))
	case 4:
		return g.nodeOf("Slice", x.dtype, x.dims, []string{x.name, g.ints(-1), g.ints(math.MinInt32), g.ints(1), g.ints(-1)})
	default:
		return g.nodeOf(pick(g, []string{"Identity", "Neg", "Abs", "Relu", "Floor", "Round", "Sign"}), x.dtype, x.dims, single(x))
	}
}

// shown adds outputs: the value in float32, and its digits as integers, which are compared exactly.
func (g *generator) shown(x tensor, unlike bool) {
	f := g.nodeOf("Cast", array.Float32, x.dims, single(x), integer("to", int64(onnx.DataType(array.Float32))))
	number := func(v float32) string { return g.constant(array.FromFloat32([]float32{v})) }
	nan := g.nodeOf("IsNaN", array.Bool, x.dims, single(f))
	known := g.nodeOf("Where", array.Float32, x.dims, []string{nan.name, number(0), f.name})
	small := g.nodeOf("Clip", array.Float32, x.dims, []string{known.name, number(-512), number(512)})
	scaled := g.nodeOf("Mul", array.Float32, x.dims, []string{small.name, number(0x1p20)})
	digits := g.nodeOf("Cast", array.Int32, x.dims, single(scaled), integer("to", int64(onnx.DataType(array.Int32))))
	above := g.nodeOf("IsInf", array.Bool, x.dims, single(f)) // x has one reader, so that it need not be stored
	for _, t := range []tensor{f, nan, digits, above} {
		g.unlike[t.name] = unlike
		g.graph.Outputs = append(g.graph.Outputs, info(t))
	}
}

// finish adds an output with a unique correct value.
func (g *generator) finish(t tensor, unlike bool) {
	g.exact[t.name], g.unlike[t.name] = true, unlike
	g.graph.Outputs = append(g.graph.Outputs, info(t))
}
