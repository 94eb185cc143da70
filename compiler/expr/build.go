package expr

import (
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
)

// The constructors below fold constants and drop neutral elements of integer arithmetic, nothing more. They panic
// on mixed operand types, which are programming errors.

// Both returns the conjunction of two conditions; nil stands for true.
func Both(a, b Expr) Expr {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return Bin(And, a, b)
}

// I returns an Int64 constant.
func I(v int64) Expr { return &Int{Value: v, Type: array.Int64} }

// F returns a constant of a floating-point type, or v rounded toward zero for another type.
func F(d array.DType, v float64) Expr {
	if d.IsFloat() {
		return &Float{Value: v, Type: d}
	}
	return &Int{Value: int64(v), Type: d}
}

// Zero returns the zero of a type.
func Zero(d array.DType) Expr { return F(d, 0) }

// Bin applies a binary operator.
func Bin(op BinaryOp, a, b Expr) Expr {
	if a.DType() != b.DType() {
		panic(fmt.Sprintf("expr: %v of %v and %v", op, a.DType(), b.DType()))
	}
	ia, aInt := a.(*Int)
	ib, bInt := b.(*Int)
	if aInt && bInt && ia.Type == array.Int64 {
		if v, ok := foldInt(op, ia.Value, ib.Value); ok {
			if op.IsComparison() {
				return &Int{Value: v, Type: array.Bool}
			}
			return I(v)
		}
	}
	if a.DType() == array.Int64 {
		if e := neutral(op, a, b, ia, ib); e != nil {
			return e
		}
	}
	if a.DType() == array.Bool && (op == And || op == Or) {
		if e := foldLogic(op, a, b, ia, ib); e != nil {
			return e
		}
	}
	return newBinary(op, a, b)
}

// The constructors below store the type in the node: asking the operands would traverse a long chain at each node.

func newBinary(op BinaryOp, a, b Expr) *Binary {
	d := a.DType()
	if op.IsComparison() {
		d = array.Bool
	}
	return &Binary{Op: op, A: a, B: b, dtype: d}
}

func newUnary(op UnaryOp, a Expr) *Unary {
	d := a.DType()
	if op == IsNaN || op == IsInf {
		d = array.Bool
	}
	return &Unary{Op: op, A: a, dtype: d}
}

func newSelect(cond, a, b Expr) *Select {
	return &Select{Cond: cond, A: a, B: b, dtype: a.DType()}
}

// FusedBin returns the sum or difference of floating-point numbers a and b as a multiply-add if b is, or becomes, a
// product. Every other sum rounds its operands first, so that the operators of a model keep their results when they
// share a kernel.
func FusedBin(op BinaryOp, a, b Expr) Expr {
	if !a.DType().IsFloat() {
		return Bin(op, a, b)
	}
	n := newBinary(op, a, b)
	n.Fused = true
	return n
}

// rebuilt returns the operator applied to other operands of the same types, folded.
func (n *Binary) rebuilt(a, b Expr) Expr {
	if n.Fused {
		return FusedBin(n.Op, a, b)
	}
	return Bin(n.Op, a, b)
}

// Product returns the operand of a fused sum or difference that is a product, which is not rounded.
func (n *Binary) Product() (product *Binary, ok bool) {
	if !n.Fused {
		return nil, false
	}
	product, ok = n.B.(*Binary)
	return product, ok && product.Op == Mul
}

func foldInt(op BinaryOp, a, b int64) (int64, bool) {
	truth := func(c bool) (int64, bool) {
		if c {
			return 1, true
		}
		return 0, true
	}
	switch op {
	case Add:
		return a + b, true
	case Sub:
		return a - b, true
	case Mul:
		return a * b, true
	case Min:
		return min(a, b), true
	case Max:
		return max(a, b), true
	case FloorDiv:
		if b > 0 {
			return FloorDivInt(a, b), true
		}
	case FloorMod:
		if b > 0 {
			return a - b*FloorDivInt(a, b), true
		}
	case Lt:
		return truth(a < b)
	case Le:
		return truth(a <= b)
	case Eq:
		return truth(a == b)
	case Ne:
		return truth(a != b)
	}
	return 0, false
}

func neutral(op BinaryOp, a, b Expr, ia, ib *Int) Expr {
	switch {
	case op == Add && ia != nil && ia.Value == 0:
		return b
	case (op == Add || op == Sub) && ib != nil && ib.Value == 0:
		return a
	case op == Mul && ia != nil && ia.Value == 1:
		return b
	case (op == Mul || op == FloorDiv) && ib != nil && ib.Value == 1:
		return a
	case op == Mul && (ia != nil && ia.Value == 0 || ib != nil && ib.Value == 0),
		op == FloorMod && ib != nil && ib.Value == 1:
		return I(0)
	}
	return nil
}

func foldLogic(op BinaryOp, a, b Expr, ia, ib *Int) Expr {
	if ia == nil {
		a, b, ia = b, a, ib
	}
	if ia == nil {
		return nil
	}
	if (ia.Value != 0) == (op == And) {
		return b
	}
	return a
}

// FloorDivInt returns a/b rounded toward minus infinity, for b > 0.
func FloorDivInt(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// AddE returns a + b.
func AddE(a, b Expr) Expr { return Bin(Add, a, b) }

// SubE returns a - b.
func SubE(a, b Expr) Expr { return Bin(Sub, a, b) }

// MulE returns a * b.
func MulE(a, b Expr) Expr { return Bin(Mul, a, b) }

// DivE returns a / b.
func DivE(a, b Expr) Expr { return Bin(Div, a, b) }

// MinE returns the smaller of a and b.
func MinE(a, b Expr) Expr { return Bin(Min, a, b) }

// MaxE returns the larger of a and b.
func MaxE(a, b Expr) Expr { return Bin(Max, a, b) }

// Un applies a unary operator.
func Un(op UnaryOp, a Expr) Expr { return newUnary(op, a) }

// InRange returns lo <= v && v < hi, on Int64.
func InRange(v Expr, lo, hi int64) Expr {
	return Bin(And, Bin(Le, I(lo), v), Bin(Lt, v, I(hi)))
}

// Sel returns cond ? a : b.
func Sel(cond, a, b Expr) Expr {
	if a.DType() != b.DType() {
		panic(fmt.Sprintf("expr: select of %v and %v", a.DType(), b.DType()))
	}
	if c, ok := cond.(*Int); ok {
		if c.Value != 0 {
			return a
		}
		return b
	}
	return newSelect(cond, a, b)
}

// To converts a to type d. It returns a itself if it has that type.
func To(d array.DType, a Expr) Expr {
	if a.DType() == d {
		return a
	}
	if i, ok := a.(*Int); ok && d.IsFloat() {
		return &Float{Value: float64(i.Value), Type: d}
	}
	return &Cast{Type: d, A: a}
}

// Lowest returns the identity of Max for a type.
func Lowest(d array.DType) Expr {
	switch {
	case d == array.Bool:
		return &Int{Value: 0, Type: d}
	case d.IsFloat():
		return &Float{Value: math.Inf(-1), Type: d}
	case d >= array.Uint8:
		return &Int{Value: 0, Type: d}
	}
	return &Int{Value: -1 << (8*d.Bytes() - 1), Type: d}
}

// LowestFinite returns the lowest finite number of float32 or float64.
func LowestFinite(d array.DType) Expr {
	if d == array.Float64 {
		return F(d, -math.MaxFloat64)
	}
	return F(d, -math.MaxFloat32)
}

// Highest returns the identity of Min for a type.
func Highest(d array.DType) Expr {
	switch {
	case d == array.Bool:
		return &Int{Value: 1, Type: d}
	case d.IsFloat():
		return &Float{Value: math.Inf(1), Type: d}
	case d >= array.Uint8:
		return &Int{Value: int64(^uint64(0) >> (64 - 8*d.Bytes())), Type: d}
	}
	return &Int{Value: int64(^uint64(0) >> (65 - 8*d.Bytes())), Type: d}
}
