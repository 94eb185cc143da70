package graphfuzz

import (
	"fmt"
	"math/rand/v2"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
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
	// Symbols lists the open extents. Inputs have the most of each.
	Symbols []*extent.Symbol
}

// opset is the operator set of the generator.
const opset = 19

// maxElements keeps tensors small enough for hundreds of models a minute.
const maxElements = 4096

// Generate draws a model of fixed shapes. It depends only on the seed.
func Generate(seed uint64) *Case {
	if seed%8 == 7 {
		return newGenerator("masked", seed, 7).maskedCase(seed)
	}
	g := newGenerator("graph", seed, 0)
	for range 1 + g.rng.IntN(3) {
		g.input()
	}
	return g.complete(seed)
}

func newGenerator(name string, seed, stream uint64) *generator {
	return &generator{
		rng: rand.New(rand.NewPCG(seed, stream)), graph: &onnx.Graph{Name: fmt.Sprint(name, seed)},
		inputs: map[string]*array.Array{}, exact: map[string]bool{}, unlike: map[string]bool{}, extents: map[string]extent.Extent{},
	}
}

// complete adds nodes and outputs to a graph of inputs.
func (g *generator) complete(seed uint64) *Case {
	most := 12
	if g.rng.IntN(8) == 0 {
		most = 40
	}
	g.steps(1 + g.rng.IntN(most))
	g.outputs()
	g.selection(seed)
	g.blocks(seed)
	g.integers(seed)
	g.casts(seed)
	g.elementwise(seed)
	g.arithmetic(seed)
	return &Case{Seed: seed, Exact: g.exact, Unlike: g.unlike, Inputs: g.inputs, Symbols: g.symbols.Symbols(), Model: &onnx.Model{
		IRVersion: 9, ProducerName: "graphfuzz", Opsets: opsets(), Graph: g.graph,
	}}
}

// steps adds nodes until there are at least so many new values.
func (g *generator) steps(values int) {
	for values += len(g.tensors); len(g.tensors) < values; {
		g.step()
	}
}

// tensor is a value of the graph being drawn. shape holds the most of each extent.
type tensor struct {
	name  string
	dtype array.DType
	shape []int64
	dims  extent.Shape
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
	// extents holds the open extents by name; it is empty for graphs of fixed shapes.
	extents map[string]extent.Extent
	// symbols owns them.
	symbols extent.Set
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
	g.add(d, extent.Fixed(shape...).Extents()...)
}

func (g *generator) value(d array.DType, shape []int64) tensor {
	return g.valueOf(d, extent.Fixed(append([]int64{}, shape...)...))
}

func (g *generator) valueOf(d array.DType, shape extent.Shape) tensor {
	g.count++
	return tensor{fmt.Sprintf("v%d", g.count), d, shape.Max(), shape}
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

// node adds a node with one result of a fixed shape and returns the result.
func (g *generator) node(op string, d array.DType, shape []int64, inputs []string, attributes ...*onnx.Attribute) tensor {
	return g.nodeOf(op, d, extent.Fixed(append([]int64{}, shape...)...), inputs, attributes...)
}

// nodeOf is node for any shape.
func (g *generator) nodeOf(op string, d array.DType, shape extent.Shape, inputs []string, attributes ...*onnx.Attribute) tensor {
	t := g.apart(op, d, shape, inputs, attributes...)
	g.tensors = append(g.tensors, t)
	return t
}

// apart is nodeOf for a result that later steps do not read by chance.
func (g *generator) apart(op string, d array.DType, shape extent.Shape, inputs []string, attributes ...*onnx.Attribute) tensor {
	t := g.valueOf(d, shape)
	g.graph.Nodes = append(g.graph.Nodes, &onnx.Node{
		Name: "n_" + t.name, Op: op, Inputs: inputs, Outputs: []string{t.name}, Attributes: attributes,
	})
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
	for _, t := range g.tensors {
		if _, isInput := g.inputs[t.name]; isInput {
			continue
		}
		if t.name == last.name || !read[t.name] && g.rng.IntN(4) > 0 || g.rng.IntN(8) == 0 {
			g.graph.Outputs = append(g.graph.Outputs, info(t))
		}
	}
}

func info(t tensor) *onnx.ValueInfo {
	v := &onnx.ValueInfo{Name: t.name, DType: t.dtype, HasShape: true}
	for _, e := range t.dims.Extents() {
		d := onnx.Dim{Value: e.Max()}
		if e.IsOpen() {
			d = onnx.Dim{Value: -1, Param: e.String()}
		}
		v.Shape = append(v.Shape, d)
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

func text(name, v string) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrString, String: v}
}
