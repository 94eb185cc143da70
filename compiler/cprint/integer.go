package cprint

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Integer operators are defined for all operands, as in package expr: they wrap around, divisions by zero are zero,
// and shifts beyond the width leave the sign. C leaves these cases undefined or traps, so signed arithmetic on data
// goes through unsigned types. Index arithmetic cannot overflow, since tensors are smaller than the address space,
// and is printed directly.

// UnsignedOf returns the C type in which arithmetic on an integer type wraps; at least as wide as int, to which C
// promotes.
func UnsignedOf(d array.DType) string {
	if d.Bytes() == 8 {
		return "uint64_t"
	}
	return "uint32_t"
}

func isSigned(d array.DType) bool { return d >= array.Int8 && d <= array.Int64 }

// wrapping returns a C expression for a sum, difference or product of two integers.
func wrapping(op expr.BinaryOp, d array.DType, a, b string) string {
	u := UnsignedOf(d)
	if types[d].Scalar == u {
		return fmt.Sprintf("(%s %s %s)", a, Infix[op], b)
	}
	return fmt.Sprintf("((%s)((%s)%s %s (%s)%s))", types[d].Scalar, u, a, Infix[op], u, b)
}

// integerBodies holds the bodies of helper functions on integers a and b of type {t}, which wraps in type {u} and
// has {bits} bits. The first is for signed types, the second for unsigned ones.
var integerBodies = map[string][2]string{
	"div": {"return b == 0 ? 0 : b == -1 ? ({t})(0 - ({u})a) : ({t})(a / b);", "return b == 0 ? 0 : ({t})(a / b);"},
	"mod": {"return b == 0 || b == -1 ? 0 : ({t})(a % b);", "return b == 0 ? 0 : ({t})(a % b);"},
	"floordiv": {
		"if (b == 0) return 0; if (b == -1) return ({t})(0 - ({u})a); {t} q = ({t})(a / b); return ({t})(q - (q * b != a && (a < 0) != (b < 0)));",
		"return b == 0 ? 0 : ({t})(a / b);",
	},
	"floormod": {
		"if (b == 0 || b == -1) return 0; {t} r = ({t})(a % b); return r != 0 && (r < 0) != (b < 0) ? ({t})(r + b) : r;",
		"return b == 0 ? 0 : ({t})(a % b);",
	},
	"pow": {
		"if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0; {u} p = 1, s = ({u})a; for (; b; b /= 2, s *= s) if (b % 2) p *= s; return ({t})p;",
		"{u} p = 1, s = a; for (; b; b /= 2, s *= s) if (b % 2) p *= s; return ({t})p;",
	},
	"shl": {"return b < 0 || b >= {bits} ? 0 : ({t})(({u})a << b);", "return b >= {bits} ? 0 : ({t})(({u})a << b);"},
	"shr": {"return b < 0 || b >= {bits} ? (a < 0 ? -1 : 0) : ({t})(a >> b);", "return b >= {bits} ? 0 : ({t})(a >> b);"},
}

// integerHelper declares a function of integerBodies; false if op is not among them.
func (h *Helpers) integerHelper(name, op string, d array.DType) bool {
	bodies, ok := integerBodies[op]
	if !ok || !d.IsInt() {
		return false
	}
	body := bodies[1]
	if isSigned(d) {
		body = bodies[0]
	}
	t := types[d].Scalar
	body = strings.NewReplacer("{t}", t, "{u}", UnsignedOf(d), "{bits}", fmt.Sprint(8*d.Bytes())).Replace(body)
	h.function(name, "%s %s(%s a, %s b) { %s }\n", t, name, t, t, body)
	return true
}
