package importer

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// frame is what the nodes of a model, or of a function that it calls, share.
type frame struct {
	opsets []onnx.Opset
	// attributes are those of the call, for references in the function's body; nil in the model itself.
	attributes map[string]*onnx.Attribute
	// depth is the number of calls around the body.
	depth int
}

// scope holds the names of one graph: the model's, a function's or that of an attribute, which sees its outer scopes
// as well.
type scope struct {
	*frame
	outer *scope
	// items has a nil item for an input of a function that the call leaves out.
	items map[string]*op.Item
	// used has how names are read; graphs that are read again share it.
	used map[string]usage
}

func newScope(f *frame, outer *scope, used map[string]usage) *scope {
	return &scope{frame: f, outer: outer, items: map[string]*op.Item{}, used: used}
}

// usage says how a name is read, by one reader or several; zero is not at all.
type usage uint8

const (
	// asWeights is as the second factor of a product, transposed or not, inAnotherWay is all else.
	asWeights usage = 1 << iota
	inAnotherWay
)

// usedBy are the names that a graph or function reads or gives, found once for all iterations and calls.
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

// markUsed notes what the nodes read, those of graphs inside them too, readers of a result before the node.
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

// readAs is how a node reads an input, where it is known how its results are read.
func readAs(used map[string]usage, n *onnx.Node, input int) usage {
	switch {
	case n.Domain != "":
	case (n.Op == op.MatMul || n.Op == op.Gemm) && input == 1:
		return asWeights
	case n.Op == op.Transpose && len(n.Outputs) == 1 && used[n.Outputs[0]] == asWeights:
		return asWeights
	}
	return inAnotherWay
}

// find is the innermost item of a name; false when there is none. The item of a function's input that the call leaves
// out, and that of the empty name, is nil.
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

// attributes are a node's, with references to those of the enclosing function resolved.
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
