package importer

import (
	"fmt"
	"maps"

	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// functionName identifies a function defined by a model.
type functionName struct{ domain, name string }

func functionsOf(m *onnx.Model) map[functionName]*onnx.Function {
	functions := map[functionName]*onnx.Function{}
	for _, f := range m.Functions {
		functions[functionName{f.Domain, f.Name}] = f
	}
	return functions
}

// maxCalls limits nested function calls; ONNX has no recursion.
const maxCalls = 64

// call inlines a function at node n.
func (b *builder) call(s *scope, f *onnx.Function, n op.Node, in []*op.Item, outputs []string) error {
	if s.depth >= maxCalls {
		return fmt.Errorf("node %q (%s): functions call each other deeper than %d", n.Name, n.Op, maxCalls)
	}
	if len(in) > len(f.Inputs) || len(outputs) > len(f.Outputs) {
		return fmt.Errorf("node %q (%s): %d inputs and %d outputs for a function of %d and %d",
			n.Name, n.Op, len(in), len(outputs), len(f.Inputs), len(f.Outputs))
	}
	b.Budget.Bytes(graph.EntryBytes * int64(len(f.Inputs)+len(f.Outputs)+len(f.Defaults)+len(n.Attrs)))
	attrs := map[string]*onnx.Attribute{}
	for _, a := range f.Defaults {
		attrs[a.Name] = a
	}
	maps.Copy(attrs, n.Attrs)
	inner := newScope(&frame{opsets: f.Opsets, attributes: attrs, depth: s.depth + 1}, nil, b.usedBy(f, f.Nodes, f.Outputs))
	for k, name := range f.Inputs {
		inner.items[name] = nil
		if k < len(in) {
			inner.items[name] = in[k]
		}
	}
	if err := b.addNodes(inner, f.Nodes); err != nil {
		return fmt.Errorf("node %q (%s): %w", n.Name, n.Op, err)
	}
	for k, output := range outputs {
		it := inner.items[f.Outputs[k]]
		if it == nil && output != "" && s.used[output] != 0 {
			return fmt.Errorf("node %q (%s): output %q is computed by no node of the function", n.Name, n.Op, f.Outputs[k])
		}
		if it != nil && output != "" {
			s.items[output] = it
		}
	}
	return nil
}
