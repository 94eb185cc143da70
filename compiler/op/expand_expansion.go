package op

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// expandedOpset is the operator set of the nodes that expansions create.
const expandedOpset = 18

// expansion is one node under expansion. A failure ends it.
type expansion struct {
	Builder
	node *Node
	in   []*Item
	// used holds for each output whether it is read.
	used []bool
}

// def returns an operator that f expands, which returns the node's outputs. It calls fail for errors.
func def(name string, minIn, maxIn int, f func(e *expansion) []*Item) Def {
	return Def{Name: name, MinIn: minIn, MaxIn: maxIn, Expand: expand(f)}
}

func expand(f func(e *expansion) []*Item) Expansion {
	return func(b Builder, n *Node, in []*Item, used []bool) (out []*Item, err error) {
		defer extent.Catch(&err)
		defer Catch(&err)
		out = f(&expansion{Builder: b, node: n, in: in, used: used})
		return out, n.Err()
	}
}

// failure is the panic value of a failed expansion, lowering, shape rule or pass; Catch makes it an error.
type failure struct{ error }

// Catch sets *err to the error at which Get ended the work of a function that defers it.
func Catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case failure:
		*err = r.error
	default:
		panic(r)
	}
}

// Catching returns f as a function that returns the error at which Get ended it.
func Catching[T any](f func(T)) func(T) error {
	return func(x T) (err error) {
		defer Catch(&err)
		f(x)
		return nil
	}
}

// Get returns a result, or ends the expansion, lowering, shape rule or pass if there is an error.
func Get[T any](result T, err error) T {
	if err != nil {
		panic(failure{err})
	}
	return result
}

// fail ends the expansion. An earlier error of an attribute takes precedence.
func (e *expansion) fail(format string, args ...any) {
	e.check()
	panic(failure{fmt.Errorf(format, args...)})
}

// check ends the expansion if an attribute had a wrong type.
func (e *expansion) check() { e.node.check() }

// failed reports whether an attribute had a wrong type.
func (e *expansion) failed() bool { return e.node.Err() != nil }

// wants reports whether output k is read.
func (e *expansion) wants(k int) bool { return k < len(e.used) && e.used[k] }

// tensor returns input k; nil if it was omitted. An input that is not a tensor is an error.
func (e *expansion) tensor(k int) *Value {
	if k >= len(e.in) || e.in[k] == nil {
		return nil
	}
	if e.in[k].Tensor == nil {
		e.fail("input %d is not a tensor", k)
	}
	return e.in[k].Tensor
}

// tensors returns all inputs, which must be tensors.
func (e *expansion) tensors() []*Value {
	values := make([]*Value, len(e.in))
	for k := range e.in {
		values[k] = e.tensor(k)
	}
	return values
}

// attributes are those of a new node.
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

// op applies an operator of set expandedOpset, under the node's own name.
func (e *expansion) op(name string, attrs attributes, in ...*Value) *Value {
	n := Node{Name: e.node.Name, Op: name, Opset: expandedOpset, Attrs: map[string]*onnx.Attribute{}, Outputs: 1}
	for _, a := range attrs {
		n.Attrs[a.Name] = a
	}
	return e.add(n, in)
}

// itself returns the first result of the node's own operator, with its attributes and set.
func (e *expansion) itself(in ...*Value) *Value {
	n := *e.node
	n.Weights = false
	return e.add(n, in)
}

func (e *expansion) add(n Node, in []*Value) *Value {
	e.check()
	return Get(e.Add(n, in...))
}

// known returns a constant.
func (e *expansion) known(a *array.Array) *Value { return e.Constant(e.node.Name, a) }

// ints returns a constant list of integers.
func (e *expansion) ints(v ...int64) *Value {
	return e.known(array.FromInt64(v, int64(len(v))))
}

// ones returns a shape of axes of extent 1.
func ones(rank int) extent.Shape { return extent.Fixed(slices.Repeat([]int64{1}, rank)...) }

// extents returns a list of extents: a constant if none is open.
func (e *expansion) extents(list ...extent.Extent) *Value { return e.Extents(e.node.Name, list) }

// count returns an extent as a scalar of type i64.
func (e *expansion) count(n extent.Extent) *Value {
	if c, ok := n.Const(); ok {
		return e.scalar(array.Int64, float64(c))
	}
	return e.reshape(e.extents(n), extent.Fixed())
}

// fixedAt returns the extent of an axis that must not be open. It panics with an *extent.OpenError otherwise.
func fixedAt(v *Value, axis int) int64 {
	n, ok := v.Shape.At(axis).Const()
	if !ok {
		panic(&extent.OpenError{Axis: axis, Extent: v.Shape.At(axis)})
	}
	return n
}

// scalar returns a constant of one element without axes.
func (e *expansion) scalar(d array.DType, v float64) *Value {
	return e.known(array.Scalar(d, v))
}

// cast converts a value, unless it has the type already.
func (e *expansion) cast(d array.DType, v *Value) *Value {
	if v != nil && v.DType == d && onnx.NarrowType(v.Narrow) != array.Float32 {
		return v
	}
	return e.op(Cast, attributes{intOf("to", int64(onnx.DataType(d)))}, v)
}

// reshape returns a value in another shape.
func (e *expansion) reshape(v *Value, shape extent.Shape) *Value {
	return e.op(Reshape, attributes{intOf("allowzero", 1)}, v, e.extents(shape.Extents()...))
}

// flat returns the elements of a value on one axis.
func (e *expansion) flat(v *Value) *Value { return e.reshape(v, extent.Fixed(-1)) }

// expand broadcasts a value to a shape.
func (e *expansion) expand(v *Value, shape extent.Shape) *Value {
	return e.op(Expand, nil, v, e.extents(shape.Extents()...))
}

// slice returns positions begin to end of an axis.
func (e *expansion) slice(v *Value, axis, begin, end int64) *Value {
	return e.span(v, axis, extent.Of(begin), extent.Of(end))
}

// span is slice for positions that may depend on open extents.
func (e *expansion) span(v *Value, axis int64, begin, end extent.Extent) *Value {
	return e.op(Slice, nil, v, e.extents(begin), e.extents(end), e.ints(axis))
}

// tensorItem returns a tensor as an output; nil for nil.
func tensorItem(v *Value) *Item {
	if v == nil {
		return nil
	}
	return &Item{Tensor: v}
}

// only returns the outputs of an operator with one.
func only(v *Value) []*Item { return []*Item{tensorItem(v)} }
