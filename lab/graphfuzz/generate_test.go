package graphfuzz

import (
	"fmt"
	"math/rand/v2"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// Case is a model with inputs.
type Case struct {
	Seed   uint64
	Model  *onnx.Model
	Inputs map[string]*array.Array
	// Exact lists the outputs that have a unique correct value, and Unlike those that ONNX Runtime computes in other
	// types than the model does.
	Exact, Unlike map[string]bool
}

// opset is the operator set of the generator.
const opset = 19

// maxElements keeps tensors small enough for hundreds of models a minute.
const maxElements = 4096

// Generate draws a model. It depends only on the seed.
func Generate(seed uint64) *Case {
	if seed%8 == 7 {
		return generateMasked(seed)
	}
	g := &generator{
		rng: rand.New(rand.NewPCG(seed, 0)), graph: &onnx.Graph{Name: fmt.Sprintf("graph%d", seed)},
		inputs: map[string]*array.Array{}, exact: map[string]bool{}, unlike: map[string]bool{},
	}
	for range 1 + g.rng.IntN(3) {
		g.input()
	}
	for nodes := 1 + g.rng.IntN(12); len(g.graph.Nodes) < nodes; {
		g.step()
	}
	g.outputs()
	g.selection(seed)
	g.blocks(seed)
	g.integers(seed)
	g.casts(seed)
	g.elementwise(seed)
	g.arithmetic(seed)
	return &Case{Seed: seed, Exact: g.exact, Unlike: g.unlike, Inputs: g.inputs, Model: &onnx.Model{
		IRVersion: 9, ProducerName: "graphfuzz", Opsets: opsets(), Graph: g.graph,
	}}
}

// tensor is a value of the graph being drawn.
type tensor struct {
	name  string
	dtype array.DType
	shape []int64
}

func (t tensor) rank() int { return len(t.shape) }

type generator struct {
	rng     *rand.Rand
	graph   *onnx.Graph
	tensors []tensor
	inputs  map[string]*array.Array
	count   int
	// exact and unlike list outputs, as in Case.
	exact, unlike map[string]bool
}

// inputTypes lists the types of arithmetic inputs, weighted by frequency.
var inputTypes = []array.DType{array.Float32, array.Float32, array.Float32, array.Float32, array.Float64, array.Int32, array.Int64, array.Bool, array.Uint8, array.Int8}

func (g *generator) input() {
	shape := make([]int64, g.rng.IntN(5))
	for k := range shape {
		shape[k] = 1 + int64(g.rng.IntN(9))
	}
	d := pick(g, inputTypes)
	if g.rng.IntN(3) == 0 { // an image
		d, shape = array.Float32, []int64{1, 1 + int64(g.rng.IntN(20)), 3 + int64(g.rng.IntN(8)), 3 + int64(g.rng.IntN(8))}
	}
	t := g.value(d, shape)
	g.graph.Inputs = append(g.graph.Inputs, info(t))
	g.inputs[t.name] = g.random(d, shape)
	g.tensors = append(g.tensors, t)
}

func (g *generator) value(d array.DType, shape []int64) tensor {
	g.count++
	return tensor{fmt.Sprintf("v%d", g.count), d, append([]int64{}, shape...)}
}

// random returns multiples of 1/8 in [-2, 2], or small integers.
func (g *generator) random(d array.DType, shape []int64) *array.Array {
	a := array.New(d, shape...)
	for i := range a.Len() {
		switch {
		case d.IsFloat():
			a.SetFloat(i, float64(g.rng.IntN(33)-16)/8)
		case d == array.Bool:
			a.SetInt(i, int64(g.rng.IntN(2)))
		default:
			a.SetInt(i, int64(g.rng.IntN(15)-7))
		}
	}
	return a
}

// constant adds an initializer.
func (g *generator) constant(a *array.Array) string {
	t := g.value(a.DType, a.Shape)
	g.graph.Initializers = append(g.graph.Initializers, &onnx.Tensor{Name: t.name, Value: a})
	return t.name
}

func (g *generator) ints(values ...int64) string {
	a := array.New(array.Int64, int64(len(values)))
	for i, v := range values {
		a.SetInt(int64(i), v)
	}
	return g.constant(a)
}

// node adds a node with one result and returns the result.
func (g *generator) node(op string, d array.DType, shape []int64, inputs []string, attributes ...*onnx.Attribute) tensor {
	t := g.value(d, shape)
	g.graph.Nodes = append(g.graph.Nodes, &onnx.Node{
		Name: "n_" + t.name, Op: op, Inputs: inputs, Outputs: []string{t.name}, Attributes: attributes,
	})
	g.tensors = append(g.tensors, t)
	return t
}

// outputs selects the outputs: the unread values except dead ends, and sometimes others.
func (g *generator) outputs() {
	read := map[string]bool{}
	for _, n := range g.graph.Nodes {
		for _, in := range n.Inputs {
			read[in] = true
		}
	}
	last := g.tensors[len(g.tensors)-1]
	for _, t := range g.tensors[len(g.graph.Inputs):] {
		if t.name == last.name || !read[t.name] && g.rng.IntN(4) > 0 || g.rng.IntN(8) == 0 {
			g.graph.Outputs = append(g.graph.Outputs, info(t))
		}
	}
}

func info(t tensor) *onnx.ValueInfo {
	v := &onnx.ValueInfo{Name: t.name, DType: t.dtype, HasShape: true}
	for _, e := range t.shape {
		v.Shape = append(v.Shape, onnx.Dim{Value: e})
	}
	return v
}

func pick[T any](g *generator, list []T) T { return list[g.rng.IntN(len(list))] }

// any returns a tensor that satisfies a condition, preferably a recent one. ok is false if no tensor does.
func (g *generator) any(condition func(tensor) bool) (t tensor, ok bool) {
	for k := len(g.tensors) - 1; k >= 0; k-- {
		if condition(g.tensors[k]) && (!ok || g.rng.IntN(3) == 0) {
			t, ok = g.tensors[k], true
		}
	}
	return t, ok
}

func ints(name string, values ...int64) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrInts, Ints: values}
}

func integer(name string, v int64) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrInt, Int: v}
}
