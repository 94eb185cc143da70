package graph

import (
	"fmt"

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

// addNode adds the results of a node to the scope: by a function of the model, by operators that it is written as, or
// as an operator of package op.
func (b *builder) addNode(s *scope, index int, n *onnx.Node) error {
	name := n.Name
	if name == "" {
		name = fmt.Sprintf("%s_%d", n.Op, index)
	}
	b.budget.For(name, n.Op)
	b.budget.Node()
	b.budget.Bytes(entryBytes * int64(len(n.Inputs)+len(n.Outputs)+len(n.Attributes)))
	in := make([]*item, 0, len(n.Inputs))
	for _, input := range n.Inputs {
		it, ok := s.find(input)
		if !ok {
			return fmt.Errorf("node %q (%s): input %q is computed by no earlier node", name, n.Op, input)
		}
		in = append(in, it)
	}
	for len(in) > 0 && in[len(in)-1] == nil {
		in = in[:len(in)-1]
	}
	for _, output := range n.Outputs {
		if _, ok := s.items[output]; ok && output != "" {
			return fmt.Errorf("node %q (%s): value %q is computed twice", name, n.Op, output)
		}
	}
	node := op.Node{
		Name: name, Op: n.Op, Opset: onnx.OpsetOf(s.opsets, n.Domain), Attrs: s.attributesOf(n), Outputs: len(n.Outputs),
	}
	if f := b.functions[functionName{n.Domain, n.Op}]; f != nil {
		return b.call(s, f, node, in, n.Outputs)
	}
	if e, ok := b.training[n.Op]; ok && n.Domain == trainingDomain {
		return b.expand(s, e, node, in, n.Outputs)
	}
	if err := checkDomain(n.Domain); err != nil {
		return fmt.Errorf("node %q (%s, opset %d): %w", name, n.Op, node.Opset, err)
	}
	if node.Opset < 1 {
		return fmt.Errorf("node %q (%s): the model does not say which operator set it uses: import one", name, n.Op)
	}
	if e, ok := b.quantisedProduct(node, in); ok {
		return b.expand(s, e, node, in, n.Outputs)
	}
	if e, ok := b.expanders[n.Op]; ok {
		return b.expand(s, e, node, in, n.Outputs)
	}
	return b.addResults(s, node, in, n.Outputs)
}

func checkDomain(domain string) error {
	if domain == "" || domain == "ai.onnx" {
		return nil
	}
	return fmt.Errorf("operators of domain %q are not supported: export the model with operators of ai.onnx only", domain)
}

// addResults adds those results of an operator of package op that are used, each as a node of its own.
func (b *builder) addResults(s *scope, n op.Node, in []*item, outputs []string) error {
	values := make([]*value, len(in))
	for k, it := range in {
		if it == nil {
			continue
		}
		if it.tensor == nil {
			return fmt.Errorf("node %q (%s, opset %d): input %d is not a tensor", n.Name, n.Op, n.Opset, k)
		}
		values[k] = it.tensor
	}
	if err := b.alignLegacy(n, values); err != nil {
		return err
	}
	for k, output := range outputs {
		if output == "" || !s.used[output] {
			continue
		}
		n.Output = k
		v, err := b.add(n, output, values...)
		if err != nil {
			return err
		}
		s.items[output] = &item{tensor: v}
	}
	return nil
}

// add adds an operator to the graph and gives its result: a constant where its operands are known, or where it has no
// elements.
func (b *builder) add(n op.Node, output string, in ...*value) (*value, error) {
	b.budget.For(n.Name, n.Op)
	b.budget.Node()
	n.In = nil
	made, err := b.apply(n, output, append([]*value{}, in...)...)
	if err != nil {
		return nil, err
	}
	switch {
	case made.Def().Kind == op.PassThrough:
		return in[0], nil
	case made.Def().Kind == op.Known || allKnown(in) || isEmpty(made.Out.Shape):
		a, err := op.Evaluate(made.Node)
		if err != nil {
			return nil, fmt.Errorf("node %q (%s, opset %d): %w", n.Name, n.Op, n.Opset, err)
		}
		return b.constant(output, a), nil
	}
	b.nodes = append(b.nodes, made)
	return made.out, nil
}

func allKnown(in []*value) bool {
	for _, v := range in {
		if v != nil && v.data == nil {
			return false
		}
	}
	return true
}
