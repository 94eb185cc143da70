package graphfuzz

import (
	"math/rand/v2"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// runtimeDomain is the domain of ONNX Runtime's operators.
const runtimeDomain = "com.microsoft"

// blocks adds, to a quarter of the graphs, a product with a new input whose weights are quantised by blocks or
// columns.
func (g *generator) blocks(seed uint64) {
	g.rng = rand.New(rand.NewPCG(seed, 2))
	if g.rng.IntN(4) > 0 {
		return
	}
	shape := []extent.Extent{g.rows(7), extent.Of(pick(g, []int64{8, 16, 24, 32, 40, 64, 96}))}
	if g.rng.IntN(3) == 0 {
		shape = append([]extent.Extent{g.rows(3)}, shape...)
	}
	x := g.add(array.Float32, shape...)
	if g.rng.IntN(2) == 0 {
		x = g.nodeOf("Relu", x.dtype, x.dims, single(x))
	}
	columns := int64(1 + g.rng.IntN(40))
	y := pick(g, []func(tensor, int64) tensor{g.matMulNBits, g.matMulNBits, g.dequantisedMatMul})(x, columns)
	if g.rng.IntN(2) == 0 {
		y = g.nodeOf("Add", y.dtype, y.dims, []string{y.name, g.constant(g.random(y.dtype, []int64{columns}))})
	}
	g.graph.Outputs = append(g.graph.Outputs, info(y))
}

// bytes returns a constant of random bytes.
func (g *generator) bytes(shape ...int64) string {
	a := array.New(array.Uint8, shape...)
	for i := range a.Data {
		a.Data[i] = byte(g.rng.IntN(256))
	}
	return g.constant(a)
}

// scales returns scales for which sums of quantised values are about one.
func (g *generator) scales(bits int64, shape ...int64) string {
	a := array.New(array.Float32, shape...)
	for i := range a.Len() {
		a.SetFloat(i, float64(1+g.rng.IntN(8))/float64(int64(8)<<bits))
	}
	return g.constant(a)
}

func product(x tensor, columns int64) extent.Shape {
	return x.dims.With(x.rank()-1, extent.Of(columns))
}

func (g *generator) matMulNBits(x tensor, columns int64) tensor {
	depth, bits, block := x.shape[x.rank()-1], pick(g, []int64{4, 4, 8}), pick(g, []int64{16, 32, 64})
	blocks := (depth-1)/block + 1
	in := []string{x.name, g.bytes(columns, blocks, block*bits/8), g.scales(bits, columns, blocks)}
	if g.rng.IntN(2) == 0 {
		in = append(in, g.bytes(columns, (blocks*bits+7)/8))
	}
	y := g.nodeOf("MatMulNBits", x.dtype, product(x, columns), in,
		integer("K", depth), integer("N", columns), integer("bits", bits), integer("block_size", block))
	g.graph.Nodes[len(g.graph.Nodes)-1].Domain = runtimeDomain
	return y
}

// dequantisedMatMul adds a product with one scale per column.
func (g *generator) dequantisedMatMul(x tensor, columns int64) tensor {
	depth := x.shape[x.rank()-1]
	codes := array.New(array.Int8, depth, columns)
	for i := range codes.Data {
		codes.Data[i] = byte(g.rng.IntN(256))
	}
	w := g.node("DequantizeLinear", x.dtype, codes.Shape, []string{g.constant(codes), g.scales(8, columns)}, integer("axis", 1))
	return g.nodeOf("MatMul", x.dtype, product(x, columns), []string{x.name, w.name})
}

// opsets lists the operator sets of the generator.
func opsets() []onnx.Opset {
	return []onnx.Opset{{Version: opset}, {Domain: runtimeDomain, Version: 1}}
}
