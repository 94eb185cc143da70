// Table is the one list of all operators, each of which has tensor expressions (package op) or is written as
// others (package expand); a few have expressions, and a form that some nodes are written in. To add an operator, add
// its Def to a family in one of the two. Who applies an operator finds it here.

package op

import (
	"errors"
	"fmt"
	"slices"
)

// name is that of an operator in its domain.
type name struct{ domain, op string }

// defs has every operator once.
var defs = index(Lowered, Operators, Forms)

func index(lowered, expanded []Def, forms []Form) map[name]*Def {
	m := map[name]*Def{}
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
func Find(domain, operator string) *Def { return defs[name{domain, operator}] }

// InferNode finds the node's operator among ONNX's own, checks operands and attributes, and sets Out. The error is a
// reason without the node's name.
func InferNode(n *Node) error {
	if why, ok := refused[n.Op]; ok {
		return errors.New(why)
	}
	d := Find("", n.Op)
	if d == nil {
		return fmt.Errorf("the operator is not supported")
	}
	return Infer(n, d)
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
