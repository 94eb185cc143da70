package expr

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Role is the source of a tensor's values.
type Role uint8

// The roles. Constants are inputs whose values are known at compile time, so that a schedule may pack them.
const (
	Computed Role = iota
	Input
	Constant
)

// Combiner folds a reduction's terms.
type Combiner uint8

// The combiners; None marks a tensor without reduction axes.
const (
	None Combiner = iota
	Sum
	Prod
	Maximum
	Minimum
)

var combinerNames = [...]string{None: "map", Sum: "sum", Prod: "prod", Maximum: "max", Minimum: "min"}

// String returns the combiner's name in the canonical text.
func (c Combiner) String() string { return combinerNames[c] }

// Identity returns the initial value of a reduction.
func (c Combiner) Identity(d array.DType) Expr {
	switch c {
	case Prod:
		return F(d, 1)
	case Maximum:
		return Lowest(d)
	case Minimum:
		return Highest(d)
	default:
		return Zero(d)
	}
}

// Combine returns one step of the reduction.
func (c Combiner) Combine(acc, term Expr) Expr {
	switch c {
	case Prod:
		return Bin(Mul, acc, term)
	case Maximum:
		return Bin(Max, acc, term)
	case Minimum:
		return Bin(Min, acc, term)
	default:
		return Bin(Add, acc, term)
	}
}

// Tensor is an input, a constant, or the result of a computation over its axes:
//
//	T[Axes] = combine over Reduce of Body        (Combiner != None)
//	T[Axes] = Body                               (Combiner == None)
type Tensor struct {
	Name  string
	DType array.DType
	// Shape holds the extent of each axis; empty for a scalar.
	Shape []int64
	// Strides is nil for a dense row-major tensor with the alignment of the kernel ABI. An input or output that is
	// part of a larger tensor has the distance between neighbours along each dimension, in elements; its alignment
	// is only that of its elements. Strides affect the location of elements, not their values.
	Strides []int64
	Role    Role
	// Max is set for a count, a scalar integer input that gives an extent of the execution, from 1 to Max. Limits
	// of axes are expressions of counts.
	Max int64
	// Points lists the numbers with which kernels are timed, the last one being Max; nil for Max alone.
	Points []int64
	// Axes has one variable per dimension of a computed tensor.
	Axes     []*Var
	Reduce   []*Var
	Combiner Combiner
	// Body has the tensor's element type.
	Body Expr
}

// NewInput returns a tensor whose values arrive with each execution.
func NewInput(name string, d array.DType, shape ...int64) *Tensor {
	return &Tensor{Name: name, DType: d, Shape: shape, Role: Input}
}

// Points is the number of points of a count that has any: kernels are timed with the first number of each count, then
// with the second, and so on.
const Points = 4

// NewCount returns a scalar input that gives an extent of an execution.
func NewCount(name string, limit int64) *Tensor {
	return &Tensor{Name: name, DType: array.Int64, Role: Input, Max: limit}
}

// Point returns the k-th point of a count.
func (t *Tensor) Point(k int) int64 {
	if t.Points == nil {
		return t.Max
	}
	return t.Points[k]
}

// NewConstant returns a tensor whose values are known at compile time.
func NewConstant(name string, d array.DType, shape ...int64) *Tensor {
	return &Tensor{Name: name, DType: d, Shape: shape, Role: Constant}
}

// Compute returns the tensor with the given value at each index.
func Compute(name string, shape []int64, body func(i []Expr) Expr) *Tensor {
	t := &Tensor{Name: name, Shape: append([]int64{}, shape...)}
	t.Axes = newVars("i", shape)
	t.Body = body(Exprs(t.Axes))
	t.DType = t.Body.DType()
	return t
}

// ReduceOver returns the tensor whose value at each index combines the terms of all reduction indices.
func ReduceOver(name string, c Combiner, shape, extents []int64, body func(i, r []Expr) Expr) *Tensor {
	t := &Tensor{Name: name, Shape: append([]int64{}, shape...), Combiner: c}
	t.Axes, t.Reduce = newVars("i", shape), newVars("r", extents)
	t.Body = body(Exprs(t.Axes), Exprs(t.Reduce))
	t.DType = t.Body.DType()
	return t
}

// At reads one element.
func (t *Tensor) At(index ...Expr) Expr {
	if len(index) != len(t.Shape) {
		panic(fmt.Sprintf("expr: %d indices into %s%v", len(index), t.Name, t.Shape))
	}
	return &Load{Tensor: t, Index: append([]Expr{}, index...)}
}

func newVars(prefix string, extents []int64) []*Var {
	vars := make([]*Var, len(extents))
	for k, e := range extents {
		vars[k] = &Var{Name: fmt.Sprintf("%s%d", prefix, k), Extent: e}
	}
	return vars
}

// Exprs returns variables as expressions.
func Exprs(vars []*Var) []Expr {
	es := make([]Expr, len(vars))
	for k, v := range vars {
		es[k] = v
	}
	return es
}
