package graphfuzz

import (
	"math"
	"math/rand/v2"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// elementwise adds, to a third of the graphs, operators that IEEE 754 defines to the last bit, on numbers of full
// precision. Contracting or reassociating them changes the result. Some inputs are unusual. ONNX Runtime reduces NaN
// by its position.
func (g *generator) elementwise(seed uint64) {
	g.rng = rand.New(rand.NewPCG(seed, 5))
	if g.rng.IntN(3) > 0 {
		return
	}
	d := pick(g, []array.DType{array.Float32, array.Float32, array.Float32, array.Float64})
	one, rows, columns, odd := extent.Of(1), g.rows(6), g.rows(40), g.rng.IntN(3) == 0
	var values []tensor
	for _, shape := range [][]extent.Extent{{rows, columns}, {rows, columns}, {one, columns}, {rows, one}} {
		x := g.add(d, shape...)
		for i, a := int64(0), g.inputs[x.name]; i < a.Len(); i++ {
			a.SetFloat(i, g.rng.NormFloat64()*math.Ldexp(1, g.rng.IntN(4)))
			if odd && g.rng.IntN(6) == 0 {
				a.SetFloat(i, pick(g, unusual))
			}
		}
		values = append(values, x)
	}
	for range 2 + g.rng.IntN(8) {
		values = append(values, g.rounded(values))
	}
	reduced := g.rng.IntN(4) == 0
	if reduced {
		x := values[len(values)-1]
		most := g.nodeOf(pick(g, []string{"ReduceMax", "ReduceMin"}), d, x.dims.With(1, one), []string{x.name, g.ints(1)})
		values = append(values, g.nodeOf("Sub", d, x.dims, []string{x.name, most.name}))
	}
	g.finish(values[len(values)-1], reduced)
	if g.rng.IntN(2) == 0 {
		g.finish(values[len(values)-2], false)
	}
}

// rounded adds an operator that rounds its result once, or not at all.
func (g *generator) rounded(values []tensor) tensor {
	recent := func() tensor { return values[len(values)-1-min(g.rng.IntN(len(values)), g.rng.IntN(len(values)))] }
	x, y := recent(), recent()
	shape, _ := broadcast(x.dims, y.dims)
	both := []string{x.name, y.name}
	switch g.rng.IntN(12) {
	case 0:
		return g.nodeOf(pick(g, []string{"Neg", "Abs", "Floor", "Ceil", "Round", "Relu", "Identity"}), x.dtype, x.dims, single(x))
	case 1:
		return g.nodeOf("Sqrt", x.dtype, x.dims, single(g.nodeOf("Abs", x.dtype, x.dims, single(x))))
	case 2:
		return g.nodeOf(pick(g, []string{"Max", "Min"}), x.dtype, shape, both)
	case 3:
		less := g.nodeOf(pick(g, []string{"Less", "GreaterOrEqual"}), array.Bool, shape, both)
		return g.nodeOf("Where", x.dtype, shape, []string{less.name, x.name, y.name})
	case 4: // the remainder as it is often spelled out
		floor := g.nodeOf("Floor", x.dtype, shape, single(g.nodeOf("Div", x.dtype, shape, both)))
		whole := g.nodeOf("Mul", x.dtype, shape, []string{floor.name, y.name})
		return g.nodeOf("Sub", x.dtype, shape, []string{x.name, whole.name})
	case 5: // a difference of squares
		a := g.nodeOf("Mul", x.dtype, x.dims, []string{x.name, x.name})
		b := g.nodeOf("Mul", y.dtype, y.dims, []string{y.name, y.name})
		return g.nodeOf("Sub", x.dtype, shape, []string{a.name, b.name})
	default:
		return g.nodeOf(pick(g, []string{"Add", "Sub", "Mul", "Mul", "Div"}), x.dtype, shape, both)
	}
}

// arithmetic adds, to a quarter of the graphs, integer operators, whose results are the same everywhere. Sums and
// products of 32 bits wrap around. Those of 64 bits stay small, where ONNX Runtime's maxima are right.
func (g *generator) arithmetic(seed uint64) {
	g.rng = rand.New(rand.NewPCG(seed, 6))
	if g.rng.IntN(4) > 0 {
		return
	}
	d := pick(g, []array.DType{array.Int32, array.Int64})
	one, rows, columns := extent.Of(1), g.rows(6), g.rows(40)
	var values []tensor
	for _, shape := range [][]extent.Extent{{rows, columns}, {rows, columns}, {one, columns}} {
		x := g.add(d, shape...)
		for i, a := int64(0), g.inputs[x.name]; i < a.Len(); i++ {
			numbers := []int64{int64(g.rng.IntN(15) - 7), int64(g.rng.IntN(2000) - 1000), int64(int32(g.rng.Uint32())), math.MinInt32, math.MaxInt32}
			if d == array.Int64 {
				numbers = numbers[:2]
			}
			a.SetInt(i, pick(g, numbers))
		}
		values = append(values, x)
	}
	for range 2 + g.rng.IntN(6) {
		values = append(values, g.integral(values))
	}
	g.finish(values[len(values)-1], false)
	g.finish(values[len(values)-2], false)
}

// integral adds an integer operator. Its result has the type of the values.
func (g *generator) integral(values []tensor) tensor {
	x, y := values[len(values)-1-g.rng.IntN(len(values))], values[g.rng.IntN(len(values))]
	d, small := x.dtype, func(least, most int) string {
		a := array.New(x.dtype)
		a.SetInt(0, int64(least+g.rng.IntN(most-least+1)))
		return g.constant(a)
	}
	cast := func(x tensor, d array.DType) tensor {
		return g.nodeOf("Cast", d, x.dims, single(x), integer("to", int64(onnx.DataType(d))))
	}
	shape, _ := broadcast(x.dims, y.dims)
	switch g.rng.IntN(12) {
	case 0:
		return g.nodeOf(pick(g, []string{"Neg", "Abs", "Sign"}), d, x.dims, single(x))
	case 1:
		return g.nodeOf("Div", d, x.dims, []string{x.name, small(1, 9)})
	case 2:
		return g.nodeOf("Mod", d, x.dims, []string{x.name, pick(g, []string{small(1, 9), small(-9, -2)})}, integer("fmod", int64(g.rng.IntN(2))))
	case 3:
		axis := int64(g.rng.IntN(2))
		x = g.nodeOf("Mod", d, x.dims, []string{x.name, small(1000, 9999)}) // ONNX Runtime's sums saturate
		return g.nodeOf(pick(g, []string{"ReduceSum", "ReduceMax", "ReduceMin"}), d, x.dims.With(int(axis), extent.Of(1)), []string{x.name, g.ints(axis)})
	case 4:
		at := g.nodeOf(pick(g, []string{"ArgMax", "ArgMin"}), array.Int64, x.dims.With(1, extent.Of(1)), single(cast(x, array.Int32)), integer("axis", 1), integer("select_last_index", int64(g.rng.IntN(2))))
		return cast(at, d)
	case 5:
		return g.nodeOf("CumSum", d, x.dims, []string{x.name, g.ints(int64(g.rng.IntN(2)))}, integer("reverse", int64(g.rng.IntN(2))), integer("exclusive", int64(g.rng.IntN(2))))
	case 6: // through bytes, where bits are shifted
		b := cast(x, array.Uint8)
		by := array.New(array.Uint8)
		by.SetInt(0, int64(g.rng.IntN(8)))
		direction := &onnx.Attribute{Name: "direction", Type: onnx.AttrString, String: pick(g, []string{"LEFT", "RIGHT"})}
		return cast(g.nodeOf("BitShift", array.Uint8, x.dims, []string{b.name, g.constant(by)}, direction), d)
	case 7:
		return cast(cast(x, pick(g, []array.DType{array.Int8, array.Uint8, array.Int32, array.Bool})), d)
	case 8:
		less := g.nodeOf(pick(g, []string{"Less", "GreaterOrEqual", "Equal"}), array.Bool, shape, []string{x.name, y.name})
		return g.nodeOf("Where", d, shape, []string{less.name, x.name, y.name})
	default:
		return g.nodeOf(pick(g, []string{"Add", "Sub", "Mul", "Max", "Min"}), d, shape, []string{x.name, y.name})
	}
}
