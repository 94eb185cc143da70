package importer

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// expand adds the outputs of an expanded node to the scope.
func (b *builder) expand(s *scope, d *op.Def, n op.Node, in []*op.Item, outputs []string) error {
	used := make([]bool, len(outputs))
	for k, output := range outputs {
		used[k] = output != "" && s.used[output] != 0
	}
	n.Weights, n.FloatKernels = len(outputs) == 1 && s.used[outputs[0]] == asWeights, b.floatKernels
	err := checkCount(d, in)
	var out []*op.Item
	if err == nil {
		out, err = d.Expand(&site{b, s}, &n, in, used)
	}
	for k, output := range outputs {
		switch {
		case err != nil || !used[k]:
		case k >= len(out) || out[k] == nil:
			err = fmt.Errorf("output %d is not supported", k)
		default:
			s.items[output] = out[k]
		}
	}
	if err != nil {
		return fmt.Errorf("node %q (%s, opset %d): %w", n.Name, n.Op, n.Opset, err)
	}
	return nil
}

func checkCount(d *op.Def, in []*op.Item) error {
	if len(in) < d.MinIn || d.MaxIn >= 0 && len(in) > d.MaxIn {
		return fmt.Errorf("%d inputs, want %d to %d", len(in), d.MinIn, d.MaxIn)
	}
	for k := range d.MinIn {
		if in[k] == nil {
			return fmt.Errorf("input %d is missing", k)
		}
	}
	return nil
}

// site is the place of a node under expansion: new nodes go into the graph, and names resolve in the scope. It is
// an op.Builder.
type site struct {
	builder *builder
	scope   *scope
}

// Budget returns the model's budget.
func (s *site) Budget() *op.Budget { return s.builder.Budget }

// Constant adds a constant for the named node.
func (s *site) Constant(node string, a *array.Array) *op.Value {
	return s.builder.item(s.builder.Constant(s.builder.NextName(node), a)).Tensor
}

// Counted returns the extent that a computed scalar has in each execution.
func (s *site) Counted(count *op.Value, most int64) extent.Extent {
	v := s.builder.values[count]
	for _, known := range s.builder.Graph.Extents.Symbols() {
		if known.Source == v {
			return known.Count()
		}
	}
	return s.builder.Graph.Extents.Add(&extent.Symbol{Name: v.Name, Max: most, Step: 1, Source: v})
}

// Extents adds a list of extents for the named node.
func (s *site) Extents(node string, list []extent.Extent) *op.Value {
	numbers := make([]op.Number, len(list))
	for k, e := range list {
		numbers[k] = op.Integer(e)
	}
	t := op.Type{DType: array.Int64, Shape: extent.Fixed(int64(len(list)))}
	return s.builder.item(s.builder.numbers(s.builder.NextName(node), t, numbers)).Tensor
}

// Add applies an operator under the name of the node that it expands.
func (s *site) Add(n op.Node, in ...*op.Value) (*op.Value, error) {
	v, err := s.builder.add(n, s.builder.NextName(n.Name), s.builder.valuesOf(in)...)
	if err != nil {
		return nil, err
	}
	return s.builder.item(v).Tensor, nil
}

// Body adds the nodes of a graph in a scope of its own.
func (s *site) Body(g *onnx.Graph, in []*op.Item) ([]*op.Item, error) {
	if len(in) != len(g.Inputs) {
		return nil, fmt.Errorf("graph %q has %d inputs, want %d", g.Name, len(g.Inputs), len(in))
	}
	var names []string
	for _, o := range g.Outputs {
		names = append(names, o.Name)
	}
	b := s.builder
	b.Budget.Bytes(graph.EntryBytes * int64(len(g.Inputs)+len(g.Outputs)+len(g.Initializers)))
	inner := newScope(s.scope.frame, s.scope, b.usedBy(g, g.Nodes, names))
	for _, t := range g.Initializers {
		inner.items[t.Name] = b.known(t)
	}
	for k, info := range g.Inputs {
		inner.items[info.Name] = in[k]
	}
	if err := b.addNodes(inner, g.Nodes); err != nil {
		return nil, err
	}
	out := make([]*op.Item, len(names))
	for k, name := range names {
		it, ok := inner.find(name)
		if !ok || it == nil {
			return nil, fmt.Errorf("output %q of graph %q is computed by no node", name, g.Name)
		}
		out[k] = it
	}
	return out, nil
}

// Branch adds the nodes of a graph. Conditions that they require matter only if the branch is taken.
func (s *site) Branch(g *onnx.Graph, cond *op.Value, is bool) ([]*op.Item, error) {
	b := s.builder
	before := len(b.required)
	out, err := s.Body(g, nil)
	if err != nil {
		b.required = b.required[:before]
		return nil, err
	}
	for k := before; k < len(b.required); k++ {
		ok, always := b.required[k].ok, s.truth(true)
		taken, other := ok, always
		if !is {
			taken, other = always, ok
		}
		if b.required[k].ok, err = s.Add(op.Node{Name: "required", Op: op.Where, Opset: requiredOpset}, cond, taken, other); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// requiredOpset is the operator set of nodes that compute what runs require.
const requiredOpset = 17

// Require adds a condition of the graph's execution.
func (s *site) Require(cond *op.Value, is bool, why string) error {
	same := "Equal"
	if !is {
		same = "Xor"
	}
	ok, err := s.Add(op.Node{Name: "required", Op: same, Opset: requiredOpset}, cond, s.truth(true))
	s.builder.required = append(s.builder.required, requirement{ok, why})
	return err
}

func (s *site) truth(is bool) *op.Value {
	a := array.New(array.Bool)
	if is {
		a.SetInt(0, 1)
	}
	return s.Constant("required", a)
}

// valuesOf returns the graph values of operands; nil for omitted ones.
func (b *builder) valuesOf(operands []*op.Value) []*graph.Value {
	values := make([]*graph.Value, len(operands))
	for k, v := range operands {
		values[k] = b.values[v]
	}
	return values
}
