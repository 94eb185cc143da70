package importer

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
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
	// open lists the symbols of extents that each execution chooses; varying records how values depend on them.
	open    []string
	varying map[*graph.Value]varies
}

// Build reads a model. shapes fixes open extents: a shape for the name of an input, or one number for a symbol. For
// the symbols in open, the number is only a sample.
func Build(m *onnx.Model, shapes map[string][]int64, open []string, budget *op.Budget) (*graph.Graph, error) {
	b := &builder{
		Graph: &graph.Graph{Name: m.Graph.Name, Budget: budget, Varying: map[*graph.Value][]int{}, Results: map[string][]*graph.Value{}}, functions: functionsOf(m),
		values: map[*op.Value]*graph.Value{}, used: map[any]map[string]usage{}, open: open, varying: map[*graph.Value]varies{},
	}
	var outputs []string
	for _, o := range m.Graph.Outputs {
		outputs = append(outputs, o.Name)
	}
	s := newScope(&frame{opsets: m.Opsets}, nil, b.usedBy(m.Graph, m.Graph.Nodes, outputs))
	for _, t := range m.Graph.Initializers {
		s.items[t.Name] = b.item(b.Constant(t.Name, t.Value))
	}
	if err := b.addInputs(s, m.Graph.Inputs, shapes); err != nil {
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
func (b *builder) addInputs(s *scope, infos []*onnx.ValueInfo, given map[string][]int64) error {
	infos = slices.DeleteFunc(slices.Clone(infos), func(info *onnx.ValueInfo) bool { return s.items[info.Name] != nil })
	shapes, err := resolveShapes(infos, given)
	if err != nil {
		return err
	}
	for k, info := range infos {
		v := b.NewValue(info.Name, op.Type{DType: info.DType, Shape: shapes[k]})
		if graph.IsEmpty(shapes[k]) {
			v.Const = array.New(info.DType, shapes[k]...)
		}
		b.inputVaries(v, info)
		s.items[info.Name] = b.item(v)
		b.Inputs = append(b.Inputs, v)
	}
	return nil
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
		case it.Tensor.Float8 != 0:
			return fmt.Errorf("output %q is of 8-bit floats, which is not supported: cast it to float32", name)
		}
		v := b.values[it.Tensor]
		switch {
		case graph.IsEmpty(v.Shape):
			v = b.Constant(name, v.Const)
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
		if open := it.Tensor.Open; open != nil {
			b.Open = append(b.Open, graph.OpenOutput{Output: len(b.Outputs), Axis: open.Axis})
			counts = append(counts, open.Count)
		}
		b.Outputs = append(b.Outputs, v)
	}
	return b.addCounts(counts)
}

// addCounts adds the counts of open outputs, each once, after the outputs.
func (b *builder) addCounts(counts []*op.Value) error {
	at := map[*op.Value]int{}
	for k, count := range counts {
		if _, ok := at[count]; !ok {
			n, err := b.Apply(op.Node{Name: "count", Op: op.Copy}, fmt.Sprintf("count.%d", len(at)), b.values[count])
			if err != nil {
				return err
			}
			b.Nodes = append(b.Nodes, n)
			at[count] = len(b.Outputs)
			b.Outputs = append(b.Outputs, n.Result)
		}
		b.Open[k].Count = at[count]
	}
	return nil
}

// item returns the item for a value of the graph.
func (b *builder) item(v *graph.Value) *op.Item {
	b.values[&v.Value] = v
	return &op.Item{Tensor: &v.Value}
}
