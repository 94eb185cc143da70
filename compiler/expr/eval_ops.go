package expr

import (
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
)

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// rounding returns the rounding of a value of type d after each operation.
func rounding(d array.DType) func(float64) float64 {
	switch d {
	case array.Float32:
		return func(v float64) float64 { return float64(float32(v)) }
	case array.Float16, array.BFloat16:
		return func(v float64) float64 { return array.Scalar(d, v).Float(0) }
	}
	return func(v float64) float64 { return v }
}

// wrapping returns the function that wraps an integer to type d.
func wrapping(d array.DType) func(int64) int64 {
	switch d {
	case array.Bool:
		return func(v int64) int64 { return truth(v != 0) }
	case array.Int8:
		return func(v int64) int64 { return int64(int8(v)) }
	case array.Int16:
		return func(v int64) int64 { return int64(int16(v)) }
	case array.Int32:
		return func(v int64) int64 { return int64(int32(v)) }
	case array.Uint8:
		return func(v int64) int64 { return int64(uint8(v)) }
	case array.Uint16:
		return func(v int64) int64 { return int64(uint16(v)) }
	case array.Uint32:
		return func(v int64) int64 { return int64(uint32(v)) }
	}
	return func(v int64) int64 { return v }
}

var combinerOps = [...]BinaryOp{Sum: Add, Prod: Mul, Maximum: Max, Minimum: Min}

var floatCombiners = [...]func(a, b float64) float64{
	Sum:     func(a, b float64) float64 { return a + b },
	Prod:    func(a, b float64) float64 { return a * b },
	Maximum: func(a, b float64) float64 { return max(a, b) },
	Minimum: func(a, b float64) float64 { return min(a, b) },
}

// binaryFloat applies op. The frequent cases of float32 are written out because they limit the evaluator's speed.
func binaryFloat(op BinaryOp, d array.DType, a, b floatFn) floatFn {
	if d == array.Float32 {
		switch op {
		case Add:
			return func(f *frame) float64 { return float64(float32(a(f) + b(f))) }
		case Sub:
			return func(f *frame) float64 { return float64(float32(a(f) - b(f))) }
		case Mul:
			return func(f *frame) float64 { return float64(float32(a(f) * b(f))) }
		case Div:
			return func(f *frame) float64 { return float64(float32(a(f) / b(f))) }
		}
	}
	switch op {
	case Max:
		return func(f *frame) float64 { return max(a(f), b(f)) }
	case Min:
		return func(f *frame) float64 { return min(a(f), b(f)) }
	}
	apply, round := floatOp(op), rounding(d)
	if d != array.Float32 && d != array.Float64 {
		round = func(v float64) float64 { return v }
	}
	if apply == nil {
		return func(f *frame) float64 {
			f.fail(fmt.Errorf("%v has no meaning on %v", op, d))
			return 0
		}
	}
	return func(f *frame) float64 { return round(apply(a(f), b(f))) }
}

func floatOp(op BinaryOp) func(a, b float64) float64 {
	switch op {
	case Add:
		return func(a, b float64) float64 { return a + b }
	case Sub:
		return func(a, b float64) float64 { return a - b }
	case Mul:
		return func(a, b float64) float64 { return a * b }
	case Div:
		return func(a, b float64) float64 { return a / b }
	case Mod:
		return math.Mod
	case FloorDiv:
		return func(a, b float64) float64 { return math.Floor(a / b) }
	case FloorMod:
		return func(a, b float64) float64 { return a - b*math.Floor(a/b) }
	case Pow:
		return math.Pow
	}
	return nil
}

var floatUnary = map[UnaryOp]func(float64) float64{
	Neg: func(v float64) float64 { return -v }, Abs: math.Abs, Exp: math.Exp, Log: math.Log, Sqrt: math.Sqrt,
	Rsqrt: func(v float64) float64 { return 1 / math.Sqrt(v) },
	Tanh:  math.Tanh, Erf: math.Erf, Floor: math.Floor, Ceil: math.Ceil, Round: math.RoundToEven,
	Sin: math.Sin, Cos: math.Cos, Tan: math.Tan, Asin: math.Asin, Acos: math.Acos, Atan: math.Atan,
	Sinh: math.Sinh, Cosh: math.Cosh, Asinh: math.Asinh, Acosh: math.Acosh, Atanh: math.Atanh,
}

func unaryFloat(op UnaryOp, d array.DType, a floatFn) floatFn {
	apply, round := floatUnary[op], rounding(d)
	if d != array.Float32 {
		round = func(v float64) float64 { return v }
	}
	if apply == nil {
		return func(f *frame) float64 {
			f.fail(fmt.Errorf("%v has no meaning on %v", op, d))
			return 0
		}
	}
	return func(f *frame) float64 { return round(apply(a(f))) }
}

// binaryInt compiles comparisons of any type and arithmetic of integers and booleans.
func (c *compiler) binaryInt(n *Binary) intFn {
	d := n.A.DType()
	if d.IsFloat() {
		return compareFloat(n.Op, c.float(n.A), c.float(n.B))
	}
	a, b := c.int(n.A), c.int(n.B)
	switch {
	case n.Op == And && d == array.Bool:
		return func(f *frame) int64 { return truth(a(f) != 0 && b(f) != 0) }
	case n.Op == Or && d == array.Bool:
		return func(f *frame) int64 { return truth(a(f) != 0 || b(f) != 0) }
	case n.Op == Add && d == array.Int64:
		return func(f *frame) int64 { return a(f) + b(f) }
	case n.Op == Mul && d == array.Int64:
		return func(f *frame) int64 { return a(f) * b(f) }
	}
	apply := intOp(n.Op, d)
	return func(f *frame) int64 { return apply(f, a(f), b(f)) }
}

func compareFloat(op BinaryOp, a, b floatFn) intFn {
	switch op {
	case Lt:
		return func(f *frame) int64 { return truth(a(f) < b(f)) }
	case Le:
		return func(f *frame) int64 { return truth(a(f) <= b(f)) }
	case Eq:
		return func(f *frame) int64 { return truth(a(f) == b(f)) }
	default:
		return func(f *frame) int64 { return truth(a(f) != b(f)) }
	}
}

// intOp returns a binary operator on integers of type d, wrapping like the type.
func intOp(op BinaryOp, d array.DType) func(f *frame, a, b int64) int64 {
	wrap := wrapping(d)
	switch op {
	case Add:
		return func(_ *frame, a, b int64) int64 { return wrap(a + b) }
	case Sub:
		return func(_ *frame, a, b int64) int64 { return wrap(a - b) }
	case Mul:
		return func(_ *frame, a, b int64) int64 { return wrap(a * b) }
	case And:
		return func(_ *frame, a, b int64) int64 { return a & b }
	case Or:
		return func(_ *frame, a, b int64) int64 { return a | b }
	case Xor:
		return func(_ *frame, a, b int64) int64 { return a ^ b }
	case Eq:
		return func(_ *frame, a, b int64) int64 { return truth(a == b) }
	case Ne:
		return func(_ *frame, a, b int64) int64 { return truth(a != b) }
	case ShiftLeft:
		return func(_ *frame, a, b int64) int64 { return wrap(a << uint64(b)) }
	case Pow:
		unsigned := d >= array.Uint8 && d <= array.Uint64
		return func(_ *frame, a, b int64) int64 { return wrap(power(a, b, unsigned)) }
	case Div, FloorDiv, Mod, FloorMod:
		return divide(op, d)
	}
	if d == array.Uint64 {
		return orderUnsigned(op)
	}
	return orderSigned(op)
}

func orderSigned(op BinaryOp) func(f *frame, a, b int64) int64 {
	switch op {
	case Min:
		return func(_ *frame, a, b int64) int64 { return min(a, b) }
	case Max:
		return func(_ *frame, a, b int64) int64 { return max(a, b) }
	case Lt:
		return func(_ *frame, a, b int64) int64 { return truth(a < b) }
	case Le:
		return func(_ *frame, a, b int64) int64 { return truth(a <= b) }
	default: // ShiftRight
		return func(_ *frame, a, b int64) int64 { return a >> uint64(b) }
	}
}

func orderUnsigned(op BinaryOp) func(f *frame, a, b int64) int64 {
	switch op {
	case Min:
		return func(_ *frame, a, b int64) int64 { return int64(min(uint64(a), uint64(b))) }
	case Max:
		return func(_ *frame, a, b int64) int64 { return int64(max(uint64(a), uint64(b))) }
	case Lt:
		return func(_ *frame, a, b int64) int64 { return truth(uint64(a) < uint64(b)) }
	case Le:
		return func(_ *frame, a, b int64) int64 { return truth(uint64(a) <= uint64(b)) }
	default: // ShiftRight
		return func(_ *frame, a, b int64) int64 { return int64(uint64(a) >> uint64(b)) }
	}
}

// power returns a to the power of b modulo 2^64, by repeated squaring; the integer nearest to zero if b is negative.
func power(a, b int64, unsigned bool) int64 {
	if b < 0 && !unsigned {
		switch {
		case a == 1, a == -1 && b%2 == 0:
			return 1
		case a == -1:
			return -1
		}
		return 0
	}
	p := int64(1)
	for n := uint64(b); n > 0; n >>= 1 {
		if n&1 != 0 {
			p *= a
		}
		a *= a
	}
	return p
}

// divide returns a division or remainder; by zero it is zero.
func divide(op BinaryOp, d array.DType) func(f *frame, a, b int64) int64 {
	wrap := wrapping(d)
	return func(_ *frame, a, b int64) int64 {
		if b == 0 {
			return 0
		}
		if d == array.Uint64 {
			if op == Div || op == FloorDiv {
				return int64(uint64(a) / uint64(b))
			}
			return int64(uint64(a) % uint64(b))
		}
		q, r := a/b, a%b
		floor := r != 0 && (r < 0) != (b < 0)
		switch {
		case op == Div, op == FloorDiv && !floor:
			return wrap(q)
		case op == FloorDiv:
			return wrap(q - 1)
		case op == FloorMod && floor:
			return wrap(r + b)
		}
		return wrap(r)
	}
}

// unaryInt compiles the tests IsNaN and IsInf, and unary operators on integers and booleans.
func (c *compiler) unaryInt(n *Unary) intFn {
	if n.Op == IsNaN || n.Op == IsInf {
		a := c.float(n.A)
		if n.Op == IsNaN {
			return func(f *frame) int64 { v := a(f); return truth(v != v) }
		}
		return func(f *frame) int64 { return truth(math.IsInf(a(f), 0)) }
	}
	a, wrap := c.int(n.A), wrapping(n.DType())
	switch {
	case n.Op == Neg:
		return func(f *frame) int64 { return wrap(-a(f)) }
	case n.Op == Abs && (n.DType() < array.Uint8):
		return func(f *frame) int64 { v := a(f); return wrap(max(v, -v)) }
	case n.Op == Not && n.DType() == array.Bool:
		return func(f *frame) int64 { return truth(a(f) == 0) }
	case n.Op == Not:
		return func(f *frame) int64 { return wrap(^a(f)) }
	case n.Op == Abs, n.Op == Floor, n.Op == Ceil, n.Op == Round:
		return a
	}
	return func(f *frame) int64 {
		f.fail(fmt.Errorf("%v has no meaning on %v", n.Op, n.DType()))
		return 0
	}
}
