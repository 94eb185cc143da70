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

// RunsLoops reports whether executions can run loops.
func (s *site) RunsLoops() bool { return !s.builder.unrolled }

// maxLoops limits the loops of a model, each of which passes over the graph look for.
const maxLoops = 256

// Loop adds a loop.
func (s *site) Loop(l op.Loop) (after, stacked []*op.Value, err error) {
	b := s.builder
	if len(b.Loops) == maxLoops {
		return nil, nil, fmt.Errorf("the model has more than %d loops", maxLoops)
	}
	undo := b.checkpoint()
	defer func() {
		if err != nil {
			undo()
		}
	}()
	iterations := b.computed(b.values[s.Extents(l.Name, []extent.Extent{l.Count})])
	m := &loopMaker{builder: b, made: &graph.Loop{
		Name: l.Name, Counter: b.NewValue(b.NextName(l.Name), op.Type{DType: array.Int64}), Count: l.Count, While: l.While,
	}}
	m.made.Counter.CounterOf = m.made
	b.Loops = append(b.Loops, m.made)
	step := b.Graph.Extents.Add(&extent.Symbol{
		Name: "step of " + l.Name, Max: max(0, l.Count.Max()-1), Step: 1, Source: m.made.Counter, Iterations: &l.Count,
	})
	states := make([]*op.Value, len(l.Init))
	for k, init := range l.Init {
		if states[k], err = m.add(op.LoopState, graph.Control{State: k}, op.Type{}, b.computed(b.values[init]), iterations); err != nil {
			return nil, nil, err
		}
	}
	required, known := len(b.required), len(b.Graph.Extents.Symbols())
	made, err := l.Body(step, states)
	if err != nil {
		return nil, nil, err
	}
	if len(b.required) > required {
		return nil, nil, fmt.Errorf("an iteration fails where a branch does not fit: %s", b.required[required].why)
	}
	for _, part := range made.Parts {
		for _, e := range part.Shape.Extents() {
			if e.DependsOn(b.Graph.Extents.Symbols()[known:]) {
				return nil, nil, fmt.Errorf("the part of an iteration is %v, of which iterations compute the extents", part.Type)
			}
		}
	}
	return m.end(states, made, iterations)
}

// loopMaker adds the nodes that begin and end a loop.
type loopMaker struct {
	*builder
	made *graph.Loop
}

// add adds a node that begins or ends the loop.
func (m *loopMaker) add(name string, c graph.Control, out op.Type, in ...*graph.Value) (*op.Value, error) {
	n, err := m.Apply(op.Node{Name: m.made.Name, Op: name, Out: out}, m.NextName(m.made.Name), slices.Clone(in)...)
	if err != nil {
		return nil, err
	}
	c.Loop, n.Control = m.made, &c
	m.made.Control, m.Nodes = append(m.made.Control, n), append(m.Nodes, n)
	return m.item(n.Result).Tensor, nil
}

// end adds the nodes that end the loop.
func (m *loopMaker) end(states []*op.Value, made op.Iteration, iterations *graph.Value) (after, stacked []*op.Value, err error) {
	ends := []*graph.Value{nil, iterations}
	for k, next := range made.Next {
		v := m.computed(m.values[next])
		if v.DType != states[k].DType || !v.Shape.Equal(states[k].Shape) {
			return nil, nil, fmt.Errorf("state %d changes from %v to %v", k, states[k].Type, v.Type)
		}
		ends = append(ends, v)
	}
	for k := range states {
		ends[0] = ends[2+k]
		v, err := m.add(op.LoopEnd, graph.Control{State: k}, op.Type{}, ends...)
		if err != nil {
			return nil, nil, err
		}
		after = append(after, v)
	}
	for k, part := range made.Parts {
		ends[0] = m.computed(m.values[part])
		t := op.Type{DType: part.DType, Shape: part.Shape.With(0, m.made.Count)}
		whole, err := m.add(op.LoopStack, graph.Control{At: made.At[k]}, t, ends...)
		if err != nil {
			return nil, nil, err
		}
		stacked = append(stacked, whole)
	}
	return after, stacked, nil
}

// checkpoint returns a function that removes what was added since.
func (b *builder) checkpoint() (undo func()) {
	nodes, loops, required, materialised := len(b.Nodes), len(b.Loops), len(b.required), maps.Clone(b.materialised)
	return func() {
		b.Nodes, b.Loops, b.required, b.materialised = b.Nodes[:nodes], b.Loops[:loops], b.required[:required], materialised
	}
}

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
