package model

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// builder adds layers to a graph. Layers take and return the names of values, whose shapes it keeps.
type builder struct {
	graph  *onnx.Graph
	shapes map[string][]int64
	// fill gives new weights their elements, uniform in centre ± limit.
	fill   func(a *array.Array, centre, limit float64)
	counts map[string]int
}

func newBuilder(name string, seed uint64) *builder {
	random := rand.NewPCG(seed, 0x7469_6c74_68)
	return &builder{
		graph: &onnx.Graph{Name: name}, shapes: map[string][]int64{}, counts: map[string]int{},
		fill: func(a *array.Array, centre, limit float64) { fillUniform(random, a, centre, limit) },
	}
}

func (b *builder) input(name string, shape []int64) {
	b.shapes[name] = shape
	b.graph.Inputs = append(b.graph.Inputs, valueInfo(name, shape))
}

// output gives the value x the name of a model output.
func (b *builder) output(x, name string) {
	for _, n := range b.graph.Nodes {
		if n.Outputs[0] == x {
			n.Outputs[0] = name
		}
	}
	b.graph.Outputs = append(b.graph.Outputs, valueInfo(name, b.shapes[x]))
}

// add applies an operator and returns its result, of the given shape.
func (b *builder) add(op string, shape []int64, inputs []string, attributes ...*onnx.Attribute) string {
	b.counts[op]++
	name := fmt.Sprintf("%s_%d", op, b.counts[op])
	b.graph.Nodes = append(b.graph.Nodes, &onnx.Node{
		Name: name, Op: op, Inputs: inputs, Outputs: []string{name + ".out"}, Attributes: attributes,
	})
	b.shapes[name+".out"] = shape
	return name + ".out"
}

func ints(name string, v ...int64) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrInts, Ints: v}
}

func integer(name string, v int64) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrInt, Int: v}
}

// weights is a new constant, uniform in centre ± limit.
func (b *builder) weights(name string, centre, limit float64, shape ...int64) string {
	b.counts[name]++
	a := array.New(array.Float32, shape...)
	b.fill(a, centre, limit)
	return b.constant(fmt.Sprintf("%s_%d", name, b.counts[name]), a)
}

// fillUniform takes two float32 elements from each random number.
func fillUniform(random *rand.PCG, a *array.Array, centre, limit float64) {
	scale := limit / (1 << 31)
	for at := 0; at < len(a.Data); at += 8 {
		r := random.Uint64()
		binary.LittleEndian.PutUint32(a.Data[at:], bits(centre+float64(int32(r))*scale))
		if at+4 < len(a.Data) {
			binary.LittleEndian.PutUint32(a.Data[at+4:], bits(centre+float64(int32(r>>32))*scale))
		}
	}
}

func bits(v float64) uint32 { return math.Float32bits(float32(v)) }

func (b *builder) constant(name string, a *array.Array) string {
	b.graph.Initializers = append(b.graph.Initializers, &onnx.Tensor{Name: name, Value: a})
	return name
}

// he is the bound of uniform weights that keeps the variance through a Relu (He et al. 2015, equation 10).
func he(fanIn int64) float64 { return math.Sqrt(6 / float64(fanIn)) }

// convolution has its attributes as in ONNX; Groups 0 means one group. Gain scales the weights; 0 means 1.
type convolution struct {
	channels, kernel, stride, pad, groups int64
	gain                                  float64
	noBias                                bool
}

func (b *builder) conv(x string, c convolution) string {
	in := b.shapes[x]
	c.stride, c.groups = max(1, c.stride), max(1, c.groups)
	if c.gain == 0 {
		c.gain = 1
	}
	fan := in[1] / c.groups * c.kernel * c.kernel
	inputs := []string{x, b.weights("conv.weight", 0, c.gain*he(fan), c.channels, in[1]/c.groups, c.kernel, c.kernel)}
	if !c.noBias {
		inputs = append(inputs, b.weights("conv.bias", 0, 0.1, c.channels))
	}
	shape := []int64{in[0], c.channels, slid(in[2], c.kernel, c.stride, c.pad), slid(in[3], c.kernel, c.stride, c.pad)}
	return b.add("Conv", shape, inputs, ints("dilations", 1, 1), integer("group", c.groups),
		ints("kernel_shape", c.kernel, c.kernel), ints("pads", c.pad, c.pad, c.pad, c.pad), ints("strides", c.stride, c.stride))
}

// slid is the number of positions of a window.
func slid(extent, kernel, stride, pad int64) int64 { return (extent+2*pad-kernel)/stride + 1 }

func (b *builder) relu(x string) string { return b.add("Relu", b.shapes[x], []string{x}) }

// relu6 is a Clip with its bounds as operands.
func (b *builder) relu6(x string) string {
	if b.counts["relu6"] == 0 {
		b.counts["relu6"]++
		b.constant("zero", array.FromFloat32([]float32{0}))
		b.constant("six", array.FromFloat32([]float32{6}))
	}
	return b.add("Clip", b.shapes[x], []string{x, "zero", "six"})
}

func (b *builder) sum(x, y string) string { return b.add("Add", b.shapes[x], []string{x, y}) }

func (b *builder) maxPool(x string, kernel, stride, pad int64) string {
	in := b.shapes[x]
	shape := []int64{in[0], in[1], slid(in[2], kernel, stride, pad), slid(in[3], kernel, stride, pad)}
	return b.add("MaxPool", shape, []string{x}, ints("kernel_shape", kernel, kernel),
		ints("pads", pad, pad, pad, pad), ints("strides", stride, stride))
}

func (b *builder) globalAveragePool(x string) string {
	in := b.shapes[x]
	return b.add("GlobalAveragePool", []int64{in[0], in[1], 1, 1}, []string{x})
}

func (b *builder) flatten(x string) string {
	in := b.shapes[x]
	return b.add("Flatten", []int64{in[0], array.Elements(in[1:])}, []string{x}, integer("axis", 1))
}

func (b *builder) dense(x string, channels int64) string {
	in := b.shapes[x]
	inputs := []string{x, b.weights("dense.weight", 0, he(in[1]), channels, in[1]), b.weights("dense.bias", 0, 0.1, channels)}
	return b.add("Gemm", []int64{in[0], channels}, inputs, integer("transB", 1))
}

func (b *builder) concat(x, y string) string {
	s := append([]int64{}, b.shapes[x]...)
	s[1] += b.shapes[y][1]
	return b.add("Concat", s, []string{x, y}, integer("axis", 1))
}

// batchNorm has statistics near mean 0 and variance 1.
func (b *builder) batchNorm(x string) string {
	c := b.shapes[x][1]
	return b.add("BatchNormalization", b.shapes[x], []string{
		x, b.weights("norm.scale", 1, 0.2, c), b.weights("norm.bias", 0, 0.1, c),
		b.weights("norm.mean", 0, 0.1, c), b.weights("norm.var", 1, 0.2, c),
	})
}
