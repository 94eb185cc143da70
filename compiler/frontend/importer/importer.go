package importer

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// builder reads an ONNX graph into a graph, folding constants and expanding operators.
type builder struct {
	*graph.Graph
	functions map[functionName]*onnx.Function
	// values maps operator operands to graph values.
	values map[*op.Value]*graph.Value
	// used holds the names read by the nodes of a graph or function, by its address.
	used map[any]map[string]usage
	// required lists conditions without which an execution fails.
	required []requirement
	// extents holds the values of extents.
	extents map[extent.Extent]*op.Value
	// materialised maps values of known numbers to those that executions compute.
	materialised map[*graph.Value]*graph.Value
	// floatKernels and unrolled are those of Given.
	floatKernels, unrolled bool
}

// requirement is a scalar bool that must be true in an execution, and the message if it is false.
type requirement struct {
	ok  *op.Value
	why string
}

// Given holds what the user fixes of a model.
type Given struct {
	// Shapes fixes open extents: a shape for the name of an input, or one number for a symbol.
	Shapes map[string][]int64
	// Open holds the extents that each execution chooses, by name.
	Open []*extent.Symbol
	// Derived gives open extents as expressions of others.
	Derived map[string]string
	// Values fixes inputs of one element.
	Values map[string]float64
	// FloatKernels turns quantised kernels of convolutions into floats, and Unrolled unrolls loops (array.Storage).
	FloatKernels, Unrolled bool
}

// Build reads a model.
func Build(m *onnx.Model, given Given, budget *op.Budget) (made *graph.Graph, err error) {
	defer op.Catch(&err)
	b := &builder{
		Graph: &graph.Graph{Name: m.Graph.Name, Budget: budget, Extents: &extent.Set{}}, functions: functionsOf(m),
		values: map[*op.Value]*graph.Value{}, used: map[any]map[string]usage{}, extents: map[extent.Extent]*op.Value{}, materialised: map[*graph.Value]*graph.Value{}, floatKernels: given.FloatKernels, unrolled: given.Unrolled,
	}
	var outputs []string
	for _, o := range m.Graph.Outputs {
		outputs = append(outputs, o.Name)
	}
	s := newScope(&frame{opsets: m.Opsets}, nil, b.usedBy(m.Graph, m.Graph.Nodes, outputs))
	for _, t := range m.Graph.Initializers {
		s.items[t.Name] = b.known(t)
	}
	if err := b.addInputs(s, m.Graph.Inputs, given); err != nil {
		return nil, err
	}
	if err := b.addNodes(s, m.Graph.Nodes); err != nil {
		return nil, err
	}
	if len(outputs) == 0 {
		return nil, fmt.Errorf("model %q has no outputs", b.Name)
	}
	return b.Graph, b.addOutputs(s, outputs)
}

// addInputs adds the inputs that are not initializers.
func (b *builder) addInputs(s *scope, infos []*onnx.ValueInfo, given Given) error {
	infos = slices.DeleteFunc(slices.Clone(infos), func(info *onnx.ValueInfo) bool { return s.items[info.Name] != nil })
	shapes, err := resolveShapes(infos, given, b.Extents)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(given.Values)) {
		if !slices.ContainsFunc(infos, func(info *onnx.ValueInfo) bool { return info.Name == name }) {
			return fmt.Errorf("no input %q: the model's inputs are %s", name, new(shapeResolver).describe(infos))
		}
	}
	for k, info := range infos {
		v := b.NewValue(info.Name, op.Type{DType: info.DType, Shape: shapes[k]})
		if shapes[k].IsEmpty() {
			v.Const = array.New(info.DType, shapes[k].Max()...)
		}
		value, fixed := given.Values[info.Name]
		if fixed {
			if v.Const, err = fixedAt(v.Type, value); err != nil {
				return fmt.Errorf("input %q: %w", info.Name, err)
			}
		}
		s.items[info.Name] = b.item(v)
		if !fixed {
			b.Inputs = append(b.Inputs, v)
		}
	}
	return nil
}

// fixedAt returns the constant for an input with a value.
func fixedAt(t op.Type, value float64) (*array.Array, error) {
	if !t.Shape.Elements().Is(1) {
		return nil, fmt.Errorf("%v has %v elements, and only an input of one can be given a value", t, t.Shape.Elements())
	}
	a := array.New(t.DType, t.Shape.Fixed()...)
	if t.DType.IsFloat() {
		a.SetFloat(0, value)
	} else if a.SetInt(0, int64(value)); a.Float(0) != value {
		return nil, fmt.Errorf("%v cannot be %v", t, value)
	}
	return a, nil
}

// addOutputs resolves the graph's outputs and gives each a value of its own with the output's name: a copy if the
// value is an input, a constant or another output as well.
func (b *builder) addOutputs(s *scope, names []string) error {
	b.Number()
	var counts []*op.Value
	for _, name := range names {
		it := s.items[name]
		switch {
		case it == nil:
			return fmt.Errorf("output %q is computed by no node", name)
		case it.Tensor == nil:
			return fmt.Errorf("output %q is not a tensor: make it one by ConcatFromSequence, SequenceAt or OptionalGetElement", name)
		case onnx.NarrowType(it.Tensor.Narrow) == array.Float32:
			return fmt.Errorf("output %q is of 8-bit floats, which is not supported: cast it to float32", name)
		}
		v := b.computed(b.values[it.Tensor])
		switch {
		case v.Shape.IsEmpty():
			shape := v.Shape
			v = b.Constant(name, v.Const)
			v.Shape = shape
		case v.Producer == nil || slices.Contains(b.Outputs, v):
			n, err := b.Apply(op.Node{Name: name, Op: op.Copy}, name, v)
			if err != nil {
				return err
			}
			b.Nodes = append(b.Nodes, n)
			v = n.Result
		default:
			v.Name = name
		}
		for axis, e := range v.Shape.Extents() {
			if e.IsOpen() && !e.IsSum() {
				b.Open = append(b.Open, graph.OpenOutput{Output: len(b.Outputs), Axis: axis})
				counts = append(counts, b.counted(e))
			}
		}
		b.Outputs = append(b.Outputs, v)
	}
	b.Own = len(b.Outputs)
	b.addCounts(counts)
	for k, r := range b.required {
		b.Outputs = append(b.Outputs, b.same(op.Node{Name: "required", Op: op.Copy}, fmt.Sprintf("required.%d", k), b.values[r.ok]))
		b.Required = append(b.Required, r.why)
	}
	for _, v := range b.Counts() {
		if !b.IsOutput(v) {
			b.Outputs = slices.Insert(b.Outputs, b.Own, v)
			for k := range b.Open {
				b.Open[k].Count++
			}
		}
	}
	return nil
}

// counted returns the value of an extent that packages cannot compute from those of the inputs.
func (b *builder) counted(e extent.Extent) *op.Value {
	if s := e.Symbol(); s != nil && s.Source != nil {
		return &s.Source.(*graph.Value).Value
	}
	if b.extents[e] == nil {
		v := b.NewValue("extent", op.Type{DType: array.Int64})
		v.Numbers = []op.Number{op.Integer(e)}
		b.extents[e] = b.item(v).Tensor
	}
	return b.extents[e]
}

// addCounts adds the counts of open outputs, each once, after the outputs.
func (b *builder) addCounts(counts []*op.Value) {
	at := map[*op.Value]int{}
	for k, count := range counts {
		if _, ok := at[count]; !ok {
			v := b.same(op.Node{Name: "count", Op: op.Copy}, fmt.Sprintf("count.%d", len(at)), b.computed(b.values[count]))
			at[count] = len(b.Outputs)
			b.Outputs = append(b.Outputs, v)
		}
		b.Open[k].Count = at[count]
	}
}

// known returns the item for a constant of the model.
func (b *builder) known(t *onnx.Tensor) *op.Item {
	v := b.Constant(t.Name, t.Value)
	v.Narrow = t.Narrow
	return b.item(v)
}

// item returns the item for a value of the graph.
func (b *builder) item(v *graph.Value) *op.Item {
	b.values[&v.Value] = v
	return &op.Item{Tensor: &v.Value}
}
