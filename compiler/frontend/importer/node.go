package importer

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

func (b *builder) addNodes(s *scope, nodes []*onnx.Node) error {
	for k, n := range nodes {
		if err := b.addNode(s, k, n); err != nil {
			return err
		}
	}
	return nil
}

// addNode adds the results of a node to the scope: by a model function, by expansion, or as an operator.
func (b *builder) addNode(s *scope, index int, n *onnx.Node) error {
	name := n.Name
	if name == "" {
		name = fmt.Sprintf("%s_%d", n.Op, index)
	}
	b.Budget.For(name, n.Op)
	b.Budget.Node()
	b.Budget.Bytes(graph.EntryBytes * int64(len(n.Inputs)+len(n.Outputs)+len(n.Attributes)))
	in, err := s.operands(name, n)
	if err != nil {
		return err
	}
	node := op.Node{Name: name, Op: n.Op, Opset: onnx.OpsetOf(s.opsets, n.Domain), Attrs: s.attributesOf(n), Outputs: len(n.Outputs)}
	if f := b.functions[functionName{n.Domain, n.Op}]; f != nil {
		return b.call(s, f, node, in, n.Outputs)
	}
	d, err := operatorOf(node, n.Domain)
	if err != nil {
		return err
	}
	if list := op.LegacyList(&node); len(in) == 1 && list != nil && n.Domain == "" {
		in = append(in, b.item(b.Constant(b.NextName(name), array.FromInt64(list, int64(len(list))))))
	}
	if isExpanded(d, node, in) {
		return b.expand(s, d, node, in, n.Outputs)
	}
	return b.addResults(s, d, node, in, n.Outputs)
}

// operands returns the items of a node's inputs, without trailing omitted ones. No output may reuse a name.
func (s *scope) operands(name string, n *onnx.Node) ([]*op.Item, error) {
	in := make([]*op.Item, 0, len(n.Inputs))
	for _, input := range n.Inputs {
		it, ok := s.find(input)
		if !ok {
			return nil, fmt.Errorf("node %q (%s): input %q is computed by no earlier node", name, n.Op, input)
		}
		in = append(in, it)
	}
	for len(in) > 0 && in[len(in)-1] == nil {
		in = in[:len(in)-1]
	}
	for _, output := range n.Outputs {
		if _, ok := s.items[output]; ok && output != "" {
			return nil, fmt.Errorf("node %q (%s): value %q is computed twice", name, n.Op, output)
		}
	}
	return in, nil
}

// operatorOf returns the operator of a node. It is nil for an unsupported standard operator: the error then follows
// when a result is added.
func operatorOf(n op.Node, domain string) (*op.Def, error) {
	d := op.Find(domain, n.Op)
	switch {
	case d == nil && domain != "":
		return nil, fmt.Errorf("node %q (%s, opset %d): operators of domain %q are not supported: "+
			"export the model with operators of ai.onnx only", n.Name, n.Op, n.Opset, domain)
	case n.Opset < 1 && domain == "":
		return nil, fmt.Errorf("node %q (%s): the model does not say which operator set it uses: import one", n.Name, n.Op)
	case d != nil && d.Internal:
		return nil, fmt.Errorf("node %q (%s, opset %d): the operator is not supported", n.Name, n.Op, n.Opset)
	}
	return d, nil
}

// isExpanded reports whether a node is expanded into others.
func isExpanded(d *op.Def, n op.Node, in []*op.Item) bool {
	return d != nil && d.Expand != nil && (d.Expands == nil || d.Expands(&n, in))
}

// addResults adds the used results of an operator, each as a node of its own. d is nil for an unsupported operator.
func (b *builder) addResults(s *scope, d *op.Def, n op.Node, in []*op.Item, outputs []string) error {
	operands := make([]*op.Value, len(in))
	for k, it := range in {
		if it == nil {
			continue
		}
		if it.Tensor == nil {
			return fmt.Errorf("node %q (%s, opset %d): input %d is not a tensor", n.Name, n.Op, n.Opset, k)
		}
		operands[k] = it.Tensor
	}
	if d != nil {
		probe := n
		if err := op.AlignLegacy(&site{b, s}, d.Legacy, &probe, operands); err != nil {
			return err
		}
	}
	values := b.valuesOf(operands)
	for k, output := range outputs {
		if output == "" || s.used[output] == 0 {
			continue
		}
		n.Output = k
		v, err := b.add(n, output, values...)
		if err != nil {
			return err
		}
		s.items[output] = b.item(v)
	}
	return nil
}

// add adds an operator to the graph and returns its result. The result is a constant if its operands are known or
// it has no elements, except for weights that products dequantise and for values that depend on open extents.
func (b *builder) add(n op.Node, output string, in ...*graph.Value) (*graph.Value, error) {
	b.Budget.For(n.Name, n.Op)
	b.Budget.Node()
	n.In = nil
	made, err := b.Apply(n, output, append([]*graph.Value{}, in...)...)
	if err != nil {
		return nil, err
	}
	narrow, err := op.NarrowOf(made.Node)
	if err != nil {
		return nil, fmt.Errorf("node %q (%s, opset %d): %w", n.Name, n.Op, n.Opset, err)
	}
	if made, err = b.asReindex(made); err != nil {
		return nil, err
	}
	result := made.Result
	if numbers, ok := op.NumbersOf(made.Node); ok {
		return b.numbers(output, made.Out, numbers), nil
	}
	for k, v := range made.Operands {
		if v == nil || v.Numbers == nil || made.ReadsNumbers(k) {
			continue
		}
		made.Operands[k] = b.computed(v)
	}
	var known *array.Array
	if isFolded(made) {
		if known, err = op.Evaluate(made.Node); err != nil {
			return nil, fmt.Errorf("node %q (%s, opset %d): %w", n.Name, n.Op, n.Opset, err)
		}
	}
	if known != nil {
		result = b.Constant(output, known)
		result.Shape = made.Out.Shape
	} else {
		b.Nodes = append(b.Nodes, made)
	}
	result.Narrow = narrow
	return result, nil
}

// asReindex returns a reshape that needs to move elements as an operator that does.
func (b *builder) asReindex(n *graph.Node) (*graph.Node, error) {
	if n.Def().Kind != op.Reshaping || op.IsView(n.In[0].Shape, n.Out.Shape) || n.In[0].Numbers != nil {
		return n, nil
	}
	return b.Apply(op.Node{Name: n.Name, Op: op.Reindex, Opset: n.Opset, Out: n.Out}, n.Result.Name, n.Operands[0])
}

// maxFolded limits the elements of constants of open shape, which executions can compute as well.
const maxFolded = 1 << 22

// isFolded reports whether a node's result is a constant, unless its elements depend on open extents.
func isFolded(n *graph.Node) bool {
	for k, v := range n.Operands {
		if v != nil && v.Const == nil && !n.ReadsNumbers(k) {
			return n.Out.Shape.IsEmpty() || n.IsKnown()
		}
	}
	return !n.Weights && n.Op != op.Numbers && (!n.Out.Shape.IsOpen() || array.Elements(n.Out.Shape.Max()) <= maxFolded)
}

// numbers returns a value with elements that are known as expressions of open extents: a constant if none depends on
// one, or else a value that is computed in each execution that needs it.
func (b *builder) numbers(output string, t op.Type, numbers []op.Number) *graph.Value {
	if a, ok := op.ArrayOf(t, numbers); ok {
		return b.Constant(output, a)
	}
	v := b.NewValue(output, t)
	v.Numbers = numbers
	return v
}

// computed returns a value that each execution computes, for one of known numbers; other values stay as they are.
func (b *builder) computed(v *graph.Value) *graph.Value {
	if v == nil || v.Numbers == nil || v.Producer != nil {
		return v
	}
	if b.materialised[v] == nil {
		b.materialised[v] = b.same(op.Node{Name: "numbers", Op: op.Numbers, Out: v.Type, Numbers: v.Numbers}, v.Name)
	}
	return b.materialised[v]
}

// same adds a node and returns its result, which has the type of the result of another node.
func (b *builder) same(n op.Node, output string, in ...*graph.Value) *graph.Value {
	made := op.Get(b.Apply(n, output, in...))
	b.Nodes = append(b.Nodes, made)
	return made.Result
}
