package graph

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// expander writes an operator of the model as other operators, or works on what is no tensor.
type expander struct {
	// minIn and maxIn bound the number of inputs; maxIn < 0 means any.
	minIn, maxIn int
	// expand gives the node's outputs in order; nil ones are not supported. Errors go to the expansion.
	expand func(e *expansion) []*item
}

// expandedOpset is the operator set of the nodes that expansions make.
const expandedOpset = 18

// expansion is one node while it is written as others. The first failure sticks: after it, all results are nil.
type expansion struct {
	*builder
	scope *scope
	node  op.Node
	in    []*item
	// used tells which outputs somebody reads.
	used []bool
	err  error
}

// expand adds the outputs of an expanded node to the scope.
func (b *builder) expand(s *scope, x expander, n op.Node, in []*item, outputs []string) error {
	e := &expansion{builder: b, scope: s, node: n, in: in}
	for _, output := range outputs {
		e.used = append(e.used, output != "" && s.used[output])
	}
	var out []*item
	if err := checkCount(x, in); err != nil {
		e.fail("%w", err)
	} else {
		out = x.expand(e)
	}
	if e.err == nil {
		e.err = e.node.Err()
	}
	for k, output := range outputs {
		switch {
		case e.err != nil || !e.used[k]:
		case k >= len(out) || out[k] == nil:
			e.fail("output %d is not supported", k)
		default:
			s.items[output] = out[k]
		}
	}
	if e.err != nil {
		return fmt.Errorf("node %q (%s, opset %d): %w", n.Name, n.Op, n.Opset, e.err)
	}
	return nil
}

func checkCount(x expander, in []*item) error {
	if len(in) < x.minIn || x.maxIn >= 0 && len(in) > x.maxIn {
		return fmt.Errorf("%d inputs, want %d to %d", len(in), x.minIn, x.maxIn)
	}
	for k := range x.minIn {
		if in[k] == nil {
			return fmt.Errorf("input %d is missing", k)
		}
	}
	return nil
}

func (e *expansion) fail(format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf(format, args...)
	}
}

// failed reports whether something failed, an attribute of a wrong type included.
func (e *expansion) failed() bool {
	if e.err == nil {
		e.err = e.node.Err()
	}
	return e.err != nil
}

// wants reports whether somebody reads output k.
func (e *expansion) wants(k int) bool { return k < len(e.used) && e.used[k] }

// tensor is input k; nil when it was left out, or is no tensor, which is a failure.
func (e *expansion) tensor(k int) *value {
	if k >= len(e.in) || e.in[k] == nil {
		return nil
	}
	if e.in[k].tensor == nil {
		e.fail("input %d is not a tensor", k)
	}
	return e.in[k].tensor
}

// tensors are all inputs; one that is no tensor is a failure.
func (e *expansion) tensors() []*value {
	values := make([]*value, len(e.in))
	for k := range e.in {
		values[k] = e.tensor(k)
	}
	return values
}

// attributes are those of a node that is made.
type attributes []*onnx.Attribute

func intsOf(name string, v ...int64) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrInts, Ints: v}
}

func intOf(name string, v int64) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrInt, Int: v}
}

func floatOf(name string, v float64) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrFloat, Float: float32(v)}
}

// op applies an operator of package op, of set expandedOpset, under the node's own name. It is nil after a failure.
func (e *expansion) op(name string, attrs attributes, in ...*value) *value {
	return e.opAt(expandedOpset, name, attrs, in...)
}

// opAt applies an operator of another set.
func (e *expansion) opAt(opset int64, name string, attrs attributes, in ...*value) *value {
	if e.failed() {
		return nil
	}
	n := op.Node{Name: e.node.Name, Op: name, Opset: opset, Attrs: map[string]*onnx.Attribute{}, Outputs: 1}
	for _, a := range attrs {
		n.Attrs[a.Name] = a
	}
	v, err := e.add(n, e.valueName(), in...)
	if err != nil {
		e.fail("%w", err)
		return nil
	}
	return v
}

// opResult is result k of an operator with several, applied with the node's own attributes and set.
func (e *expansion) opResult(k int, name string, in ...*value) *value {
	if e.failed() {
		return nil
	}
	n := e.node
	n.Op, n.Output = name, k
	v, err := e.add(n, e.valueName(), in...)
	if err != nil {
		e.fail("%w", err)
	}
	return v
}

func (e *expansion) valueName() string { return fmt.Sprintf("%s.%d", e.node.Name, e.nextID) }

// known makes a constant.
func (e *expansion) known(a *array.Array) *value { return e.constant(e.valueName(), a) }

// ints is a constant list of integers.
func (e *expansion) ints(v ...int64) *value {
	return e.known(array.FromInt64(v, int64(len(v))))
}

// scalar is a constant of one element and no axes.
func (e *expansion) scalar(d array.DType, v float64) *value {
	a := array.New(d)
	a.SetFloat(0, v)
	return e.known(a)
}

// cast converts a value, unless it has the type already.
func (e *expansion) cast(d array.DType, v *value) *value {
	if v != nil && v.DType == d {
		return v
	}
	return e.op(op.Cast, attributes{intOf("to", int64(onnx.DataType(d)))}, v)
}

// reshape gives a value another shape.
func (e *expansion) reshape(v *value, shape ...int64) *value {
	return e.op(op.Reshape, attributes{intOf("allowzero", 1)}, v, e.ints(shape...))
}

// slice takes positions begin to end of an axis.
func (e *expansion) slice(v *value, axis, begin, end int64) *value {
	return e.op(op.Slice, nil, v, e.ints(begin), e.ints(end), e.ints(axis))
}

// tensorItem is a tensor as an output; nil after a failure.
func tensorItem(v *value) *item {
	if v == nil {
		return nil
	}
	return &item{tensor: v}
}

// only are the outputs of an operator with one.
func only(v *value) []*item { return []*item{tensorItem(v)} }
