package emit

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/program"
)

// CheckForms refuses a model that depends on its open extents in another way than by factors and sums: graphs are its
// operators with various numbers in place of the extents, the first of which are the most, followed by others of each
// extent alone. What its operators are, the shapes of their results, their constants and their attributes must all be
// of one form. The error names the operator.
func CheckForms(extents []program.Extent, at [][]int64, graphs []*graph.Graph) error {
	o := &opener{extents: extents, at: at}
	for s, g := range graphs {
		if len(g.Nodes) != len(graphs[0].Nodes) {
			return fmt.Errorf("the model has %d operators with %s and %d with %s", len(graphs[0].Nodes), o.say(0), len(g.Nodes), o.say(s))
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

// CheckOutputs refuses a model whose outputs have other shapes with some numbers than those of one form; the
// arguments are those of CheckForms. Operators may be others.
func CheckOutputs(extents []program.Extent, at [][]int64, graphs []*graph.Graph) error {
	o := &opener{extents: extents, at: at}
	for k, v := range graphs[0].Outputs {
		shapes := make([][]int64, len(graphs))
		for s, g := range graphs {
			shapes[s] = g.Outputs[k].Shape
		}
		forms, ok := o.forms(shapes)
		for s, shape := range shapes {
			for d, f := range forms {
				ok = ok && len(shape) == len(shapes[0]) && f.value(at[s]) == shape[d]
			}
			if !ok {
				return fmt.Errorf("output %q is %v with %s and %v with %s, which is not in proportion: give %s other bounds, or fix it by --shape",
					v.Name, shapes[0], o.say(0), shape, o.say(s), o.names())
			}
		}
	}
	return nil
}

// names are those of the open extents.
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
		if n.Op != first.Op || len(n.Operands) != len(first.Operands) || len(n.Result.Shape) != len(first.Result.Shape) || len(n.Attrs) != len(first.Attrs) {
			return fmt.Errorf("it is another operator with %s than with %s", o.say(s), o.say(0))
		}
	}
	for axis := range first.Result.Shape {
		if s, ok := o.fits(nodes, func(n *graph.Node) int64 { return n.Result.Shape[axis] }); !ok {
			return fmt.Errorf("with %s its result has %d elements on axis %d, which is not in proportion", o.say(s), nodes[s].Result.Shape[axis], axis)
		}
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

// fits reports whether a number of each sample has a form, and else a sample that does not have it.
func (o *opener) fits(nodes []*graph.Node, number func(*graph.Node) int64) (sample int, ok bool) {
	values := make([]int64, len(nodes))
	for s, n := range nodes {
		values[s] = number(n)
	}
	f, ok := o.fit(values)
	for s, at := range o.at {
		if !ok && f.value(at) != values[s] {
			return s, false
		}
	}
	return 0, true
}

// checkAttribute: lists of integers may have a form.
func (o *opener) checkAttribute(nodes []*graph.Node, name string) error {
	numbers := func(n *graph.Node) []int64 { return append([]int64{n.Attrs[name].Int}, n.Attrs[name].Ints...) }
	first := nodes[0].Attrs[name]
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
	}
	for k := range numbers(nodes[0]) {
		if s, ok := o.fits(nodes, func(n *graph.Node) int64 { return numbers(n)[k] }); !ok {
			return fmt.Errorf("its attribute %s is not in proportion with %s", name, o.say(s))
		}
	}
	return nil
}

// maxForms bounds the elements of a constant that may each have a form.
const maxForms = 1 << 12

// checkOperand: a constant that is not the same in all samples must have the first elements of that of the most, or
// integers that have forms.
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

// hasForm reports whether an element of the constants of all samples has a form, or is one divided by what has.
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
