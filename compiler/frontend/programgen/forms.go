package programgen

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/program"
)

// CheckForms rejects a model that depends on its open extents other than by factors and sums. graphs holds its
// operators for various extents: first the maxima, then other values of each extent alone. Operators, result
// shapes, constants and attributes must all have a common form. The error names the operator.
func CheckForms(extents []program.Extent, at [][]int64, graphs []*graph.Graph) error {
	o := &opener{extents: extents, at: at}
	for s, g := range graphs {
		if len(g.Nodes) != len(graphs[0].Nodes) {
			return fmt.Errorf("the model has %d operators with %s and %d with %s: give %s other bounds, or fix it by --shape", len(graphs[0].Nodes), o.say(0),
				len(g.Nodes), o.say(s), o.names())
		}
	}
	for k := range graphs[0].Nodes {
		nodes := make([]*graph.Node, len(graphs))
		for s, g := range graphs {
			nodes[s] = g.Nodes[k]
		}
		if err := o.checkNode(nodes); err != nil {
			return fmt.Errorf("node %q (%s): %w: give %s other bounds, or fix it by --shape", nodes[0].Name, nodes[0].Op, err, o.names())
		}
	}
	return nil
}

// CheckResults rejects a model if some outputs have shapes of a different form for some extents, or if for an
// extent of zero a node computes shapes or known numbers of a different form. The arguments are those of
// CheckForms, optionally followed by graphs with different operators, since operators on empty values are dropped;
// alike is the number of graphs before these.
func CheckResults(extents []program.Extent, at [][]int64, graphs []*graph.Graph, alike int) error {
	o := &opener{extents: extents, at: at}
	for s, g := range graphs {
		if len(g.Required) != len(graphs[0].Required) {
			return fmt.Errorf("a branch of an If fits with %s but not with %s: give %s other bounds, or fix it by --shape", o.say(s), o.say(0), o.names())
		}
	}
	for k, v := range graphs[0].Outputs {
		shapes := make([][]int64, len(graphs))
		for s, g := range graphs {
			shapes[s] = g.Outputs[k].Shape.Fixed()
		}
		if s := o.unlike(shapes, len(shapes)); s >= 0 {
			return fmt.Errorf("output %q is %v with %s and %v with %s, which is not linear in the extents: give %s other bounds, or fix it by --shape",
				v.Name, shapes[0], o.say(0), shapes[s], o.say(s), o.names())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(graphs[0].Results)) {
		for k := range graphs[0].Results[name] {
			if err := o.checkResult(name, k, graphs, alike); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkResult checks the k-th value of a name.
func (o *opener) checkResult(name string, k int, graphs []*graph.Graph, alike int) error {
	shapes, numbers := make([][]int64, len(graphs)), make([][]int64, len(graphs))
	known := true
	for s, g := range graphs {
		if k >= len(g.Results[name]) {
			return nil
		}
		v := g.Results[name][k]
		shapes[s] = v.Shape.Fixed()
		if known = known && v.Const != nil && !v.DType.IsFloat() && v.Const.Len() <= maxForms; known {
			for i := range v.Const.Len() {
				numbers[s] = append(numbers[s], v.Const.Int(i))
			}
		}
	}
	s := o.unlike(shapes, alike)
	if s < 0 && known {
		s = o.unlike(numbers, alike)
		shapes = numbers
	}
	if s < alike { // values without any form are rejected by the operators that read them
		return nil
	}
	return fmt.Errorf("value %q is %v with %s and %v with %s, which is not linear in the extents: give %s other bounds, or fix it by --shape",
		name, shapes[0], o.say(0), shapes[s], o.say(s), o.names())
}

// unlike returns the first sample whose numbers do not have the form of the first ones; -1 if there is no such sample.
func (o *opener) unlike(lists [][]int64, first int) (sample int) {
	for s, list := range lists {
		if len(list) != len(lists[0]) {
			return s
		}
	}
	seen := &opener{extents: o.extents, at: o.at[:first]}
	for d := range lists[0] {
		f, _ := seen.fit(column(lists[:first], d))
		for s, list := range lists {
			if f.At(o.at[s]) != list[d] {
				return s
			}
		}
	}
	return -1
}

// names returns the names of the open extents.
func (o *opener) names() string {
	list := make([]string, len(o.extents))
	for k, e := range o.extents {
		list[k] = e.Name
	}
	return strings.Join(list, " or ")
}

func (o *opener) checkNode(nodes []*graph.Node) error {
	first := nodes[0]
	for s, n := range nodes {
		if n.Op != first.Op || len(n.Operands) != len(first.Operands) || n.Result.Shape.Rank() != first.Result.Shape.Rank() || len(n.Attrs) != len(first.Attrs) {
			return fmt.Errorf("it is another operator with %s than with %s", o.say(s), o.say(0))
		}
	}
	shapes := make([][]int64, len(nodes))
	for s, n := range nodes {
		shapes[s] = n.Result.Shape.Fixed()
	}
	if s := o.unlike(shapes, len(shapes)); s >= 0 {
		return fmt.Errorf("with %s its result has the shape %v, which is not in proportion", o.say(s), shapes[s])
	}
	for name := range first.Attrs {
		if err := o.checkAttribute(nodes, name); err != nil {
			return err
		}
	}
	for k := range first.Operands {
		if err := o.checkOperand(nodes, k); err != nil {
			return err
		}
	}
	return nil
}

// checkAttribute checks an attribute. Lists of integers may have a form.
func (o *opener) checkAttribute(nodes []*graph.Node, name string) error {
	first, numbers := nodes[0].Attrs[name], make([][]int64, len(nodes))
	for s, n := range nodes {
		a := n.Attrs[name]
		if a == nil || len(a.Ints) != len(first.Ints) {
			return fmt.Errorf("its attribute %s is another with %s than with %s", name, o.say(s), o.say(0))
		}
		rest, other := *first, *a
		rest.Int, rest.Ints, other.Int, other.Ints = 0, nil, 0, nil
		if a != first && !reflect.DeepEqual(rest, other) {
			return fmt.Errorf("its attribute %s is another with %s than with %s", name, o.say(s), o.say(0))
		}
		numbers[s] = append([]int64{a.Int}, a.Ints...)
	}
	if s := o.unlike(numbers, len(numbers)); s >= 0 {
		return fmt.Errorf("its attribute %s is not in proportion with %s", name, o.say(s))
	}
	return nil
}

// maxForms limits the elements of a constant that may each have a form.
const maxForms = 1 << 12

// checkOperand checks a constant operand. If it differs between samples, it must be a prefix of that for the
// maximum, or consist of integers that have forms.
func (o *opener) checkOperand(nodes []*graph.Node, k int) error {
	constants := make([]*array.Array, len(nodes))
	for s, n := range nodes {
		if v := n.Operands[k]; v != nil {
			constants[s] = v.Const
		}
		if (n.Operands[k] == nil) != (nodes[0].Operands[k] == nil) || (constants[s] == nil) != (constants[0] == nil) {
			return fmt.Errorf("its operand %d is a constant only with %s or %s", k, o.say(s), o.say(0))
		}
	}
	first := constants[0]
	if first == nil || !slices.ContainsFunc(constants, func(a *array.Array) bool { return !isSame(a, first) }) {
		return nil
	}
	corners := true
	for _, a := range constants {
		corners = corners && a.DType == first.DType && len(a.Shape) == len(first.Shape) && isCorner(a, first)
	}
	if corners {
		return nil
	}
	for s, a := range constants {
		if !isSame(a, first) && (a.DType != first.DType || !slices.Equal(a.Shape, first.Shape) || a.Len() > maxForms) {
			return fmt.Errorf("its operand %d is another constant with %s than with %s", k, o.say(s), o.say(0))
		}
	}
	for i := range first.Len() {
		if !o.hasForm(constants, i) {
			return fmt.Errorf("its operand %d is a constant that is not in proportion", k)
		}
	}
	return nil
}

// hasForm reports whether an element of the samples' constants has a form, or is the reciprocal of one.
func (o *opener) hasForm(constants []*array.Array, i int64) bool {
	whole, inverse := make([]int64, len(constants)), make([]int64, len(constants))
	isWhole, isInverse := true, constants[0].DType.IsFloat()
	for s, a := range constants {
		if !a.DType.IsFloat() {
			whole[s] = a.Int(i)
			continue
		}
		var w, v bool
		whole[s], inverse[s], w, v = wholeOrInverse(a.Float(i))
		isWhole, isInverse = isWhole && w, isInverse && v
	}
	_, fits := o.fit(whole)
	_, inverts := o.fit(inverse)
	return isWhole && fits || isInverse && inverts
}

func isSame(a, b *array.Array) bool {
	return a == b || a.DType == b.DType && slices.Equal(a.Shape, b.Shape) &&
		(len(a.Data) == 0 || &a.Data[0] == &b.Data[0] || isCorner(a, b))
}
