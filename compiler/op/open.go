package op

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Open describes an extent that depends on data: the shape has the largest one on Axis, and Count, a scalar of type
// i64, is the actual one. The elements beyond it are padding, which no result depends on.
type Open struct {
	Axis  int
	Count *Value
}

// Close turns an open value into one of full shape: operand 0 up to operand 1, the count, on an axis, and then
// operand 2.
const Close = "close"

var openDefs = []Def{closeDef()}

func closeDef() Def {
	return moveDef(Close, 3, 3, func(n *Node) (Type, error) {
		n.axis(n.Int("axis", 0), n.In[0].Shape.Rank())
		return n.In[0].Type, n.err
	}, func(n *Node, in []Operand, i []expr.Expr) expr.Expr {
		axis := n.axis(n.Int("axis", 0), len(i))
		return expr.Sel(expr.Bin(expr.Lt, i[axis], in[1].At()), in[0].At(i...), in[2].At())
	}).internal()
}

// OpenOf returns the open extent of a node's result, derived from its operands, or nil. It returns an error if a
// result would depend on padding, or on a count that the model does not have.
func OpenOf(n *Node) (*Open, error) {
	if n.Op == Close {
		return nil, nil
	}
	var result *Open
	for k, v := range n.In {
		if v.Open == nil {
			continue
		}
		axis := n.through(k, v.Open.Axis)
		switch {
		case axis < 0 || n.Out.Shape.Fixed()[axis] != v.Shape.Fixed()[v.Open.Axis]:
			return nil, fmt.Errorf("the extent of axis %d of input %d, %v, depends on data, which is not supported here: "+
				"make the input an output of the model, and end the model there", v.Open.Axis, k, v.Type)
		case result != nil && *result != Open{axis, v.Open.Count}:
			return nil, fmt.Errorf("the extents of two inputs depend on data, and need not be the same: that is not supported")
		}
		result = &Open{axis, v.Open.Count}
	}
	if result == nil {
		return nil, nil
	}
	return result, n.meets(result.Axis)
}

// meets checks that operands combined elementwise with an open one have an extent of one on its open axis.
func (n *Node) meets(axis int) error {
	if n.def.Kind != ElementWise && n.Op != Concat {
		return nil
	}
	for k, v := range n.In {
		if at := axis - n.Out.Shape.Rank() + v.Shape.Rank(); v.Present() && v.Open == nil && at >= 0 && v.Shape.Fixed()[at] != 1 {
			return fmt.Errorf("input %d, %v, has a known extent where that of another input depends on data: that is not supported", k, v.Type)
		}
	}
	return nil
}

// through returns the result axis whose elements depend only on those at the same position on an axis of operand k;
// -1 if none exists.
func (n *Node) through(k, axis int) int {
	switch n.def.Kind {
	case ElementWise:
		return axis + n.Out.Shape.Rank() - n.In[k].Shape.Rank()
	case Permute:
		return slices.Index(n.def.Perm(n), axis)
	case Reshaping:
		return reshapedAxis(n.In[0].Shape.Fixed(), n.Out.Shape.Fixed(), axis)
	}
	if rule := throughs[n.Op]; rule != nil {
		return rule(n, k, axis)
	}
	return -1
}

// reshapedAxis returns the axis of a reshaped value that equals an axis of the value.
func reshapedAxis(from, to []int64, axis int) int {
	for k := range to {
		if to[k] == from[axis] && array.Elements(to[:k]) == array.Elements(from[:axis]) {
			return k
		}
	}
	return -1
}

// throughs holds the rules of operators that are neither elementwise nor move whole axes.
var throughs = map[string]func(n *Node, k, axis int) int{
	Gather:     throughGather,
	"GatherND": throughGatherND,
	Concat: func(n *Node, _, axis int) int {
		return unless(axis == concatAxis(n), axis)
	},
	Slice: func(n *Node, k, axis int) int {
		start, step, _ := sliceRange(n)
		return unless(k > 0 || start[axis] != 0 || step[axis] != 1, axis)
	},
	"Split": func(n *Node, k, axis int) int {
		return unless(k > 0 || axis == n.axis(n.Int("axis", 0), n.Out.Shape.Rank()), axis)
	},
	Softmax:    func(n *Node, _, axis int) int { return unless(softmaxAxes(n)[axis], axis) },
	LogSoftmax: func(n *Node, _, axis int) int { return unless(softmaxAxes(n)[axis], axis) },
	MatMul: func(n *Node, k, axis int) int {
		return unless(k > 0 || n.In[0].Shape.Rank() < 2 || axis != n.In[0].Shape.Rank()-2, n.Out.Shape.Rank()-2)
	},
	Gemm:           func(n *Node, k, axis int) int { return unless(k > 0 || axis > 0 || n.Int("transA", 0) != 0, 0) },
	"ArgMax":       func(n *Node, k, axis int) int { return throughReduction(n, k, axis, argAxis(n)) },
	"ArgMin":       func(n *Node, k, axis int) int { return throughReduction(n, k, axis, argAxis(n)) },
	ReduceSum:      func(n *Node, k, axis int) int { return throughReduction(n, k, axis, reducedAxes(n)) },
	ReduceMax:      func(n *Node, k, axis int) int { return throughReduction(n, k, axis, reducedAxes(n)) },
	ReduceMin:      func(n *Node, k, axis int) int { return throughReduction(n, k, axis, reducedAxes(n)) },
	ReduceMean:     func(n *Node, k, axis int) int { return throughReduction(n, k, axis, reducedAxes(n)) },
	GatherElements: func(_ *Node, k, axis int) int { return unless(k == 0, axis) },
}

func unless(refused bool, axis int) int {
	if refused {
		return -1
	}
	return axis
}

func throughGather(n *Node, k, axis int) int {
	over := n.axis(n.Int("axis", 0), n.In[0].Shape.Rank())
	switch {
	case k == 1:
		return over + axis
	case axis < over:
		return axis
	}
	return unless(axis == over, axis+n.In[1].Shape.Rank()-1)
}

// throughGatherND follows the axes of tuples.
func throughGatherND(n *Node, k, axis int) int {
	return unless(k == 0 || axis == n.In[1].Shape.Rank()-1 || int64(axis) < n.Int("batch_dims", 0), axis)
}

// throughReduction follows an axis that is kept.
func throughReduction(n *Node, k, axis int, reduced []bool) int {
	if k > 0 || reduced[axis] {
		return -1
	}
	at := axis
	for _, r := range reduced[:axis] {
		if r && n.Int("keepdims", 1) == 0 {
			at--
		}
	}
	return at
}

// Limit returns the smallest or the largest element of a type, as a scalar.
func Limit(d array.DType, largest bool) *array.Array {
	e := expr.Lowest(d)
	if largest {
		e = expr.Highest(d)
	}
	a := array.New(d)
	switch e := e.(type) {
	case *expr.Float:
		a.SetFloat(0, e.Value)
	case *expr.Int:
		a.SetInt(0, e.Value)
	}
	return a
}
