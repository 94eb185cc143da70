package modelzoo

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// builder adds operators to a graph. Its methods take and return the names of values, whose shapes it tracks.
type builder struct {
	graph  *onnx.Graph
	seed   uint64
	shapes map[string][]int64
	counts map[string]int
	// open is set if the batch and the number of tokens are symbols: shapes then contain sample values.
	open bool
	// parameters counts learned values: weights, biases, scales, embeddings, including those of a normalisation
	// that was folded into a convolution.
	parameters int64
	// sources generate the elements of weights, in the order of the graph's initializers; nil for constants.
	sources []*uniform
}

func newBuilder(name string, seed uint64) *builder {
	return &builder{graph: &onnx.Graph{Name: name}, seed: seed, shapes: map[string][]int64{}, counts: map[string]int{}}
}

func (b *builder) input(name string, dtype array.DType, shape ...int64) string {
	b.shapes[name] = shape
	info := valueInfo(name, dtype, shape)
	if b.open {
		info.Shape[0] = onnx.Dim{Value: -1, Param: "batch"}
		if dtype == array.Int64 {
			info.Shape[1] = onnx.Dim{Value: -1, Param: "sequence"}
		}
	}
	b.graph.Inputs = append(b.graph.Inputs, info)
	return name
}

// output names the float32 value x as a model output.
func (b *builder) output(x, name string, symbols ...string) {
	if !b.open {
		symbols = nil
	}
	b.typedOutput(x, name, array.Float32, symbols...)
}

// typedOutput names a value of a type as a model output. Extents with a symbol depend on data, or are open.
func (b *builder) typedOutput(x, name string, dtype array.DType, symbols ...string) {
	for _, n := range b.graph.Nodes {
		for k, v := range n.Outputs {
			if v == x {
				n.Outputs[k] = name
			}
		}
		for k, v := range n.Inputs {
			if v == x {
				n.Inputs[k] = name
			}
		}
	}
	b.shapes[name] = b.shapes[x]
	info := valueInfo(name, dtype, b.shapes[x])
	for axis, symbol := range symbols {
		if symbol != "" {
			info.Shape[axis] = onnx.Dim{Value: -1, Param: symbol}
		}
	}
	b.graph.Outputs = append(b.graph.Outputs, info)
}

func valueInfo(name string, dtype array.DType, shape []int64) *onnx.ValueInfo {
	v := &onnx.ValueInfo{Name: name, DType: dtype, HasShape: true}
	for _, e := range shape {
		v.Shape = append(v.Shape, onnx.Dim{Value: e})
	}
	return v
}

// add applies an operator and returns its result, of the given shape.
func (b *builder) add(op string, shape []int64, inputs []string, attributes ...*onnx.Attribute) string {
	return b.addAll(op, [][]int64{shape}, inputs, attributes...)[0]
}

// addAll applies an operator with a result for each shape; a nil shape after the first is an omitted result.
func (b *builder) addAll(op string, shapes [][]int64, inputs []string, attributes ...*onnx.Attribute) []string {
	name := b.unique(op)
	outputs := make([]string, len(shapes))
	for k, shape := range shapes {
		outputs[k] = fmt.Sprint(name, ".out")
		if k > 0 {
			outputs[k] += fmt.Sprint(k)
		}
		if k > 0 && shape == nil {
			outputs[k] = ""
			continue
		}
		b.shapes[outputs[k]] = shape
	}
	b.graph.Nodes = append(b.graph.Nodes, &onnx.Node{Name: name, Op: op, Inputs: inputs, Outputs: outputs, Attributes: attributes})
	return outputs
}

func (b *builder) unique(name string) string {
	b.counts[name]++
	return fmt.Sprintf("%s_%d", name, b.counts[name])
}

func ints(name string, v ...int64) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrInts, Ints: v}
}

func integer(name string, v int64) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrInt, Int: v}
}

func float(name string, v float32) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrFloat, Float: v}
}

// constant returns a value that is not learned.
func (b *builder) constant(name string, a *array.Array) string {
	name = b.unique(name)
	b.shapes[name] = a.Shape
	b.graph.Initializers = append(b.graph.Initializers, &onnx.Tensor{Name: name, Value: a})
	b.sources = append(b.sources, nil)
	return name
}

// scalar returns a float32 constant of rank 0.
func (b *builder) scalar(v float32) string {
	return b.constant("scalar", array.FromFloat32([]float32{v}))
}

// indices returns an int64 constant of rank 1.
func (b *builder) indices(v ...int64) string {
	a := array.New(array.Int64, int64(len(v)))
	for k, e := range v {
		a.SetInt(int64(k), e)
	}
	return b.constant("indices", a)
}

// broadcast applies an elementwise operator to values of equal rank, or with fewer axes.
func (b *builder) broadcast(op, x, y string) string {
	s, t := b.shapes[x], b.shapes[y]
	if len(s) < len(t) {
		s, t = t, s
	}
	shape := slices.Clone(s)
	for k, e := range t {
		at := len(s) - len(t) + k
		shape[at] = max(shape[at], e)
	}
	return b.add(op, shape, []string{x, y})
}

func (b *builder) sum(x, y string) string     { return b.broadcast("Add", x, y) }
func (b *builder) product(x, y string) string { return b.broadcast("Mul", x, y) }

// unary applies an elementwise operator of one operand.
func (b *builder) unary(op, x string, attributes ...*onnx.Attribute) string {
	return b.add(op, b.shapes[x], []string{x}, attributes...)
}

func (b *builder) relu(x string) string { return b.unary("Relu", x) }

func (b *builder) reshape(x string, shape ...int64) string {
	to := shape
	if b.open {
		to = b.copied(x, shape)
	}
	return b.add("Reshape", shape, []string{x, b.indices(to...)})
}

// copied returns a shape for Reshape that copies the extents equal to those of x, and infers the first other axis.
func (b *builder) copied(x string, shape []int64) []int64 {
	to := slices.Clone(shape)
	for k, e := range shape {
		switch from := b.shapes[x]; {
		case k < len(from) && e == from[k]:
			to[k] = 0
		case k == 0:
			to[k] = -1
		}
	}
	return to
}

// tokens returns the number of tokens as a tensor of one element, if it is open.
func (b *builder) tokens(ids string) string {
	shape := b.add("Shape", []int64{2}, []string{ids})
	return b.add("Slice", []int64{1}, []string{shape, b.indices(1), b.indices(2)})
}

// upTo returns the start of a constant along axes, up to the number of tokens.
func (b *builder) upTo(x, ids string, shape []int64, axes ...int64) string {
	ends, starts := b.tokens(ids), make([]int64, len(axes))
	if len(axes) > 1 {
		ends = b.joined(0, slices.Repeat([]string{ends}, len(axes))...)
	}
	return b.add("Slice", shape, []string{x, b.indices(starts...), ends, b.indices(axes...)})
}

func (b *builder) transpose(x string, perm ...int64) string {
	shape := make([]int64, len(perm))
	for k, p := range perm {
		shape[k] = b.shapes[x][p]
	}
	return b.add("Transpose", shape, []string{x}, ints("perm", perm...))
}

// concat concatenates values along the channel axis.
func (b *builder) concat(values ...string) string { return b.joined(1, values...) }

// joined concatenates values along an axis.
func (b *builder) joined(axis int, values ...string) string {
	shape := slices.Clone(b.shapes[values[0]])
	for _, v := range values[1:] {
		shape[axis] += b.shapes[v][axis]
	}
	return b.add("Concat", shape, values, integer("axis", int64(axis)))
}

// part returns a range of positions on an axis.
func (b *builder) part(x string, axis int, from, to int64) string {
	shape := slices.Clone(b.shapes[x])
	shape[axis] = to - from
	return b.add("Slice", shape, []string{x, b.indices(from), b.indices(to), b.indices(int64(axis))})
}

// gather takes positions on an axis.
func (b *builder) gather(x, at string, axis int) string {
	s := b.shapes[x]
	return b.add("Gather", slices.Concat(s[:axis], b.shapes[at], s[axis+1:]), []string{x, at}, integer("axis", int64(axis)))
}

// softmax is over the last axis.
func (b *builder) softmax(x string) string { return b.unary("Softmax", x, integer("axis", -1)) }
