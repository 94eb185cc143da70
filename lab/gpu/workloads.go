package gpu

import (
	"fmt"
	"math/rand/v2"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// drawing is a model of independent operators, each with its own inputs.
type drawing struct {
	*rand.Rand
	graph *onnx.Graph
}

// perKind is the number of workloads of each kind.
const perKind = 2

// randomModel returns a model with random workloads of every kind that has a sketch.
func randomModel(seed uint64) *onnx.Model {
	d := drawing{rand.New(rand.NewPCG(seed, 0)), &onnx.Graph{Name: "points"}}
	for _, kind := range []func(){d.product, d.product, d.convolution, d.grouped, d.depthwise, d.softmax, d.normalisation, d.attention, d.mean, d.pool} {
		for range perKind {
			kind()
		}
	}
	return &onnx.Model{IRVersion: 8, Opsets: []onnx.Opset{{Version: 17}}, Graph: d.graph}
}

// extent returns a random size up to most: a power of two, a multiple of eight, or any.
func (d drawing) extent(most int64) int64 {
	switch n := d.Int64N(most) + 1; d.IntN(3) {
	case 0:
		power := int64(1)
		for power*2 <= n {
			power *= 2
		}
		return power
	case 1:
		return max(n/8*8, min(8, most))
	default:
		return n
	}
}

// pick returns one of some numbers.
func (d drawing) pick(of ...int64) int64 { return of[d.IntN(len(of))] }

func (d drawing) input(t array.DType, shape ...int64) string {
	name := fmt.Sprintf("x%d", len(d.graph.Inputs))
	d.graph.Inputs = append(d.graph.Inputs, value(name, t, shape...))
	return name
}

// node adds an operator and returns its result.
func (d drawing) node(op string, inputs []string, attributes ...*onnx.Attribute) string {
	name := fmt.Sprintf("n%d", len(d.graph.Nodes))
	d.graph.Nodes = append(d.graph.Nodes, &onnx.Node{Name: name, Op: op, Inputs: inputs, Outputs: []string{name}, Attributes: attributes})
	return name
}

// output declares an output of the model.
func (d drawing) output(name string, t array.DType, shape ...int64) {
	d.graph.Outputs = append(d.graph.Outputs, value(name, t, shape...))
}

func ints(name string, values ...int64) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrInts, Ints: values}
}

func integer(name string, v int64) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrInt, Int: v}
}

func (d drawing) product() {
	t := []array.DType{array.Float32, array.Float16, array.BFloat16}[d.IntN(3)]
	batch, m, k, n := d.pick(1, 1, d.extent(6)), d.extent(512), d.extent(1024), d.extent(512)
	out := d.node("MatMul", []string{d.input(t, batch, m, k), d.input(t, batch, k, n)})
	d.output(out, t, batch, m, n)
}

// convolve adds a convolution.
func (d drawing) convolve(batch, channels, filters, groups int64) {
	kernel, stride, dilation := d.pick(1, 3, 3, 5), d.pick(1, 1, 2), d.pick(1, 1, 2)
	pad := d.Int64N(kernel/2*dilation + 1)
	reach := (kernel-1)*dilation + 1
	h, w := reach+d.Int64N(40), reach+d.Int64N(40)
	out := d.node("Conv", []string{d.input(array.Float32, batch, channels, h, w), d.input(array.Float32, filters, channels/groups, kernel, kernel)},
		ints("strides", stride, stride), ints("dilations", dilation, dilation), ints("pads", pad, pad, pad, pad), integer("group", groups))
	d.output(out, array.Float32, batch, filters, (h+2*pad-reach)/stride+1, (w+2*pad-reach)/stride+1)
}

func (d drawing) convolution() { d.convolve(d.pick(1, 4), d.extent(128), d.extent(128), 1) }

func (d drawing) grouped() {
	groups := d.pick(2, 4, 8)
	d.convolve(1, groups*d.pick(3, 8, 16), groups*d.pick(4, 8, 16), groups)
}

func (d drawing) depthwise() {
	channels := d.extent(256)
	d.convolve(1, channels, channels, channels)
}

func (d drawing) softmax() {
	rows, n := d.extent(300), d.extent(3000)
	d.output(d.node("Softmax", []string{d.input(array.Float32, rows, n)}, integer("axis", -1)), array.Float32, rows, n)
}

func (d drawing) normalisation() {
	rows, n := d.extent(300), d.extent(2000)
	in := []string{d.input(array.Float32, rows, n), d.input(array.Float32, n), d.input(array.Float32, n)}
	d.output(d.node("LayerNormalization", in, integer("axis", -1)), array.Float32, rows, n)
}

// attention adds softmax(q kᵀ) v. The keys are already transposed.
func (d drawing) attention() {
	heads, queries, keys, width := d.pick(1, 4, 12), d.extent(200), d.extent(200), d.pick(16, 32, 64)
	scores := d.node("MatMul", []string{d.input(array.Float32, heads, queries, width), d.input(array.Float32, heads, width, keys)})
	weights := d.node("Softmax", []string{scores}, integer("axis", -1))
	out := d.node("MatMul", []string{weights, d.input(array.Float32, heads, keys, width)})
	d.output(out, array.Float32, heads, queries, width)
}

func (d drawing) mean() {
	rows, n := d.extent(64), d.extent(20000)
	d.output(d.node("ReduceMean", []string{d.input(array.Float32, rows, n)}, ints("axes", 1), integer("keepdims", 0)), array.Float32, rows)
}

func (d drawing) pool() {
	channels, kernel, stride := d.extent(128), d.pick(2, 3), d.pick(1, 2)
	h, w := kernel+d.Int64N(60), kernel+d.Int64N(60)
	out := d.node("MaxPool", []string{d.input(array.Float32, 1, channels, h, w)}, ints("kernel_shape", kernel, kernel), ints("strides", stride, stride))
	d.output(out, array.Float32, 1, channels, (h-kernel)/stride+1, (w-kernel)/stride+1)
}
