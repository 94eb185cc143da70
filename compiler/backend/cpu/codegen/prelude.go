package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// commonPrelude follows the ABI header in every unit.
const commonPrelude = `
typedef uint16_t tilth_bfloat16;
typedef int32_t tilth_word __attribute__((aligned(1), may_alias));
`

// vector declares the vector type with that many lanes, its unaligned twin for memory and its splat, once, and
// returns its name. For clang a splat is a cast: kernels may have hundreds of them, and inlining a call takes clang a
// tenth of a millisecond.
func (u *Unit) vector(d array.DType, lanes int64) string {
	if lanes == 1 {
		return cprint.TypeOf(d).Scalar
	}
	name := cprint.VectorName(d, lanes)
	if u.declarations.Has(name) {
		return name
	}
	t, bytes := cprint.TypeOf(d), lanes*d.Bytes()
	u.declarations.Declare(name, fmt.Sprintf(`#ifdef __clang__
typedef %[2]s %[1]s __attribute__((ext_vector_type(%[3]d)));
typedef %[2]s %[1]s_mem __attribute__((ext_vector_type(%[3]d), aligned(%[5]d), may_alias));
#define %[1]s_splat(x) ((%[1]s)(%[2]s)(x))
#else
typedef %[2]s %[1]s __attribute__((vector_size(%[4]d)));
typedef %[2]s %[1]s_mem __attribute__((vector_size(%[4]d), aligned(%[5]d), may_alias));
static inline __attribute__((unused, always_inline)) %[1]s %[1]s_splat(%[2]s x) { %[1]s v = {%[6]s}; return v; }
#endif
`, name, t.Scalar, lanes, bytes, d.Bytes(), strings.Join(slices.Repeat([]string{"x"}, int(lanes)), ", ")))
	return name
}

// helpers returns the functions on scalars.
func (u *Unit) helpers() *cprint.Helpers {
	return &cprint.Helpers{Declarations: &u.declarations, Dialect: cprint.C}
}

// helper declares a function on a type (lanes 1: a scalar) once, and returns its name.
func (u *Unit) helper(op string, d array.DType, lanes int64) string {
	if lanes == 1 {
		return u.helpers().Helper(op, d)
	}
	t := u.vector(d, lanes)
	name := cprint.HelperName(op, d, lanes)
	if u.declarations.Has(name) {
		return name
	}
	head := cprint.C.Head
	switch {
	case u.castHelper(head, name, op, t, d, lanes), u.withinHelper(head, name, op, t, lanes), u.nearestHelper(head, name, op, t, lanes):
	case op == "min" || op == "max" || op == "min_nan" || op == "max_nan":
		u.extreme(head, name, op, t, d, lanes)
	case op == "select":
		u.vectorSelect(head, name, t, d, lanes)
	case strings.HasPrefix(op, "across_"):
		u.acrossHelper(head, name, strings.TrimPrefix(op, "across_"), d, lanes)
	case op == "fold":
		u.fold(head, name, d, lanes, false)
	case op == "pairs":
		u.fold(head, name, d, lanes, true)
	case op == "fma":
		u.vectorMultiplyAdd(head, name, t, d, lanes)
	case op == "any":
		u.anyLane(head, name, t, d, lanes)
	case d == array.Float32 && vectorFunctions[op] != "" && !(u.avoidsDoubles && inDoubles[op]):
		u.vectorMath(head, name, op, lanes)
	case op == "pow":
		u.lanewisePow(head, name, t, d, lanes)
	default:
		u.lanewiseMath(head, name, op, t, d, lanes)
	}
	return name
}

// extremeHelper returns the function for Min or Max on vectors that propagates NaN from either operand.
func (u *Unit) extremeHelper(op expr.BinaryOp, d array.DType, lanes int64) string {
	if d.IsFloat() && lanes > 1 {
		return u.helper(op.String()+"_nan", d, lanes)
	}
	return u.helper(op.String(), d, lanes)
}

// extreme declares the smaller or larger of two values, which is NaN if either is. On vectors this takes one
// instruction if only the second operand may be NaN, and three otherwise: op_nan.
func (u *Unit) extreme(head, name, op, t string, d array.DType, lanes int64) {
	base, counts := strings.CutSuffix(op, "_nan")
	test := map[string]string{"min": "<", "max": ">"}[base]
	choose, mask := u.helper("select", d, lanes), u.vector(cprint.TypeOf(d).Mask, lanes)
	value := fmt.Sprintf("%s((%s)(a %s b), a, b)", choose, mask, test)
	if counts {
		value = fmt.Sprintf("%s((%s)(a != a), a, %s(a, b))", choose, mask, u.helper(base, d, lanes))
	}
	body := fmt.Sprintf("  return %s;\n", value)
	if d == array.Float32 && !counts {
		body = u.byInstruction(extremes[base], lanes, []string{"a", "b"}, body, func() string { return u.helper(op, d, lanes/2) })
	}
	u.declarations.Declare(name, fmt.Sprintf("%s%s %s(%s a, %s b) {\n%s}\n", head, t, name, t, t, body))
}

// extremes holds the intrinsics for Min and Max of floats. Only one compiler has them. Compilers otherwise emit two
// instructions if an operand is zero.
var extremes = map[string]instructions{"min": extremeInstructions("min"), "max": extremeInstructions("max")}

func extremeInstructions(op string) instructions {
	const clang = "defined(__clang__) && "
	return instructions{
		4:  {clang + "defined(__SSE2__)", "__builtin_ia32_" + op + "ps(a, b)"},
		8:  {clang + "defined(__AVX__)", "__builtin_ia32_" + op + "ps256(a, b)"},
		16: {clang + "defined(__AVX512F__)", "__builtin_ia32_" + op + "ps512(a, b, 4)"},
	}
}
