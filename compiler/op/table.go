package op

import (
	"errors"
	"fmt"
	"slices"
)

// name identifies an operator in its domain.
type name struct{ domain, op string }

// defs holds every operator once: those with tensor expressions, those that are expanded, and the forms of some.
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

// Find returns the operator of a domain, which is empty for ONNX's own; nil if none exists.
func Find(domain, operator string) *Def { return defs[name{domain, operator}] }

// InferNode finds the node's operator among ONNX's own, checks operands and attributes, and sets Out. The error
// does not include the node's name.
func InferNode(n *Node) error {
	if why, ok := refused[n.Op]; ok {
		return errors.New(why)
	}
	d := Find("", n.Op)
	if d == nil {
		return fmt.Errorf("the operator is not supported")
	}
	if err := Infer(n, d); err != nil {
		return err
	}
	return checkIndices(n)
}
