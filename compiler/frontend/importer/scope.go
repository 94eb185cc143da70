package importer

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// frame is the state shared by the nodes of a model or of an inlined function.
type frame struct {
	opsets []onnx.Opset
	// attributes are those of the call, for references in the function's body; nil in the model itself.
	attributes map[string]*onnx.Attribute
	// depth is the number of enclosing calls.
	depth int
}

// scope holds the names of one graph: that of the model, a function or an attribute. The last one also sees its
// outer scopes.
type scope struct {
	*frame
	outer *scope
	// items has a nil entry for a function input that the call omits.
	items map[string]*op.Item
	// used records how names are read; repeated reads of a graph share it.
	used map[string]usage
}

func newScope(f *frame, outer *scope, used map[string]usage) *scope {
	return &scope{frame: f, outer: outer, items: map[string]*op.Item{}, used: used}
}

// usage records how a name is read, by any number of readers; zero means not at all.
type usage uint8

const (
	// asWeights is a read as the second factor of a product, possibly transposed; inAnotherWay is any other read.
	asWeights usage = 1 << iota
	inAnotherWay
)

// usedBy returns the names that a graph or function reads or returns, computed once for all iterations and calls.
func (b *builder) usedBy(of any, nodes []*onnx.Node, outputs []string) map[string]usage {
	if b.used[of] == nil {
		used := map[string]usage{}
		for _, name := range outputs {
			used[name] |= inAnotherWay
		}
		markUsed(used, nodes)
		b.used[of] = used
	}
	return b.used[of]
}

// markUsed records the reads of nodes and of their nested graphs, visiting the readers of a result before its node.
func markUsed(used map[string]usage, nodes []*onnx.Node) {
	for _, n := range slices.Backward(nodes) {
		for k, name := range n.Inputs {
			used[name] |= readAs(used, n, k)
		}
		for _, a := range n.Attributes {
			if a.Graph == nil {
				continue
			}
			markUsed(used, a.Graph.Nodes)
			for _, o := range a.Graph.Outputs {
				used[o.Name] |= inAnotherWay
			}
		}
	}
}

// readAs returns how a node reads an input, once the uses of its results are known.
func readAs(used map[string]usage, n *onnx.Node, input int) usage {
	switch {
	case n.Domain != "":
	case (n.Op == op.MatMul || n.Op == op.Gemm || n.Op == op.Conv) && input == 1:
		return asWeights
	case n.Op == op.Transpose && len(n.Outputs) == 1 && used[n.Outputs[0]] == asWeights:
		return asWeights
	}
	return inAnotherWay
}

// find returns the innermost item of a name; false if none exists. Omitted function inputs and the empty name
// have a nil item.
func (s *scope) find(name string) (*op.Item, bool) {
	if name == "" {
		return nil, true
	}
	for ; s != nil; s = s.outer {
		if it, ok := s.items[name]; ok {
			return it, true
		}
	}
	return nil, false
}

// attributesOf returns a node's attributes, with references to those of the enclosing function resolved.
func (s *scope) attributesOf(n *onnx.Node) map[string]*onnx.Attribute {
	attrs := map[string]*onnx.Attribute{}
	for _, a := range n.Attributes {
		if a.Ref == "" {
			attrs[a.Name] = a
			continue
		}
		if given := s.attributes[a.Ref]; given != nil {
			named := *given
			named.Name = a.Name
			attrs[a.Name] = &named
		}
	}
	return attrs
}
