package table

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/op"
	"github.com/tilth-dev/tilth/compiler/op/expand"
)

// name is that of an operator in its domain.
type name struct{ domain, op string }

// defs has every operator once.
var defs = index(op.Lowered, expand.Operators, expand.Forms)

func index(lowered, expanded []op.Def, forms []expand.Form) map[name]*op.Def {
	m := map[name]*op.Def{}
	for _, d := range slices.Concat(lowered, expanded) {
		m[name{d.Domain, d.Name}] = &d
	}
	for _, f := range forms {
		d := m[name{"", f.Name}]
		d.Expand, d.Expands = f.Expand, f.Applies
	}
	return m
}

// Find is the operator of a domain, which is empty for ONNX's own; nil when there is none.
func Find(domain, operator string) *op.Def { return defs[name{domain, operator}] }

// Infer finds the node's operator among ONNX's own, checks operands and attributes, and sets Out. The error is a
// reason without the node's name.
func Infer(n *op.Node) error {
	if why, ok := refused[n.Op]; ok {
		return errors.New(why)
	}
	d := Find("", n.Op)
	if d == nil {
		return fmt.Errorf("the operator is not supported")
	}
	return op.Infer(n, d)
}

// Supported lists the names of the operators of a domain that models may use, in alphabetical order.
func Supported(domain string) []string {
	var names []string
	for n, d := range defs {
		if n.domain == domain && !d.Internal {
			names = append(names, n.op)
		}
	}
	slices.Sort(names)
	return names
}
