package codegen

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
)

// commonPrelude stands behind the ABI header in every unit.
const commonPrelude = `
typedef uint16_t tilth_bfloat16;
static inline __attribute__((unused)) float tilth_from_bfloat16(tilth_bfloat16 x) {
  union { uint32_t u; float f; } v = {(uint32_t)x << 16};
  return v.f;
}
static inline __attribute__((unused)) tilth_bfloat16 tilth_to_bfloat16(float x) {
  union { float f; uint32_t u; } v = {x};
  if (x != x) return (tilth_bfloat16)(v.u >> 16 | 0x40);
  return (tilth_bfloat16)((v.u + 0x7fff + (v.u >> 16 & 1)) >> 16);
}
`

// vector declares the vector type with that many lanes, its unaligned twin for memory and its splat, once, and returns its name.
func (u *Unit) vector(d array.DType, lanes int64) string {
	if lanes == 1 {
		return ctypes[d].scalar
	}
	name := vectorName(d, lanes)
	if u.declared[name] {
		return name
	}
	u.declared[name] = true
	t, bytes := ctypes[d], lanes*d.Bytes()
	fmt.Fprintf(&u.prelude, `#ifdef __clang__
typedef %[2]s %[1]s __attribute__((ext_vector_type(%[3]d)));
typedef %[2]s %[1]s_mem __attribute__((ext_vector_type(%[3]d), aligned(%[5]d), may_alias));
#else
typedef %[2]s %[1]s __attribute__((vector_size(%[4]d)));
typedef %[2]s %[1]s_mem __attribute__((vector_size(%[4]d), aligned(%[5]d), may_alias));
#endif
static inline __attribute__((unused, always_inline)) %[1]s %[1]s_splat(%[2]s x) { %[1]s v = {%[6]s}; return v; }
`, name, t.scalar, lanes, bytes, d.Bytes(), repeat("x", lanes))
	return name
}

func repeat(x string, n int64) string {
	list := x
	for range n - 1 {
		list += ", " + x
	}
	return list
}

// helper declares a function on a type (lanes 1: a scalar) once, and returns its name.
func (u *Unit) helper(op string, d array.DType, lanes int64) string {
	t := u.vector(d, lanes)
	name := fmt.Sprintf("tilth_%s_%vx%d", op, d, lanes)
	if u.declared[name] {
		return name
	}
	u.declared[name] = true
	const head = "static inline __attribute__((unused, always_inline)) "
	switch {
	case op == "min" || op == "max":
		u.extreme(head, name, op, t, d, lanes)
	case op == "floordiv":
		fmt.Fprintf(&u.prelude, "%s%s %s(%s a, %s b) { %s q = a / b; return q - (q * b != a && (a < 0) != (b < 0)); }\n", head, t, name, t, t, t)
	case op == "floormod":
		fmt.Fprintf(&u.prelude, "%s%s %s(%s a, %s b) { %s r = a %% b; return r != 0 && (r < 0) != (b < 0) ? r + b : r; }\n", head, t, name, t, t, t)
	case op == "pow":
		fmt.Fprintf(&u.prelude, "%s%s %s(%s a, %s b) { %s p = 1; if (b < 0) return a == 1 ? 1 : a == -1 ? (b %% 2 ? -1 : 1) : 0; for (; b; b /= 2, a *= a) if (b %% 2) p *= a; return p; }\n", head, t, name, t, t, t)
	case op == "to_u64":
		fmt.Fprintf(&u.prelude, "%suint64_t %s(%s a) { return a < 0 ? (uint64_t)(int64_t)a : (uint64_t)a; }\n", head, name, t)
	case op == "abs" && lanes == 1:
		fmt.Fprintf(&u.prelude, "%s%s %s(%s a) { return a < 0 ? (%s)-a : a; }\n", head, t, name, t, t)
	case op == "exp" && d == array.Float32:
		u.vectorExp(head, name, t, lanes)
	default:
		u.lanewiseMath(head, name, op, t, d, lanes)
	}
	return name
}

// extreme is the smaller or larger of two values; where one is NaN, so is the answer when it stands first.
func (u *Unit) extreme(head, name, op, t string, d array.DType, lanes int64) {
	test := map[string]string{"min": "<", "max": ">"}[op]
	nan := ""
	if d.IsFloat() && lanes == 1 {
		nan = " || a != a"
	}
	if lanes == 1 {
		fmt.Fprintf(&u.prelude, "%s%s %s(%s a, %s b) { return a %s b%s ? a : b; }\n", head, t, name, t, t, test, nan)
		return
	}
	mask := u.vector(ctypes[d].mask, lanes)
	fmt.Fprintf(&u.prelude, `%[1]s%[2]s %[3]s(%[2]s a, %[2]s b) {
#ifdef __clang__
  return a %[4]s b ? a : b;
#else
  %[5]s m = (%[5]s)(a %[4]s b);
  return (%[2]s)(((%[5]s)a & m) | ((%[5]s)b & ~m));
#endif
}
`, head, t, name, test, mask)
}

// vectorExp is e^x on float vectors: x = n ln2 + r, |r| <= ln2/2, by Cody and Waite's two-part reduction, e^r by its Taylor
// polynomial of degree 7 (truncation below half a unit in the last place), and 2^n through the exponent bits. Beyond the
// range of floats it saturates at 0 and infinity; NaN stays NaN.
func (u *Unit) vectorExp(head, name, t string, lanes int64) {
	mask := u.vector(array.Int32, lanes)
	splat := t + "_splat"
	least, most := u.helper("max", array.Float32, lanes), u.helper("min", array.Float32, lanes)
	fmt.Fprintf(&u.prelude, `%[1]s%[2]s %[3]s(%[2]s x) {
  %[2]s y = %[6]s(%[5]s(-104.0f), x);
  y = %[7]s(%[5]s(89.0f), y);
  %[2]s n = (y * %[5]s(0x1.715476p+0f) + %[5]s(0x1.8p+23f)) - %[5]s(0x1.8p+23f);
  %[2]s r = y - n * %[5]s(0x1.62e4p-1f) - n * %[5]s(0x1.7f7d1cp-20f);
  %[2]s p = %[5]s(0x1.a01a02p-13f);
  p = p * r + %[5]s(0x1.6c16c2p-10f);
  p = p * r + %[5]s(0x1.111112p-7f);
  p = p * r + %[5]s(0x1.555556p-5f);
  p = p * r + %[5]s(0x1.555556p-3f);
  p = p * r + %[5]s(0x1p-1f);
  p = p * r + %[5]s(1.0f);
  p = p * r + %[5]s(1.0f);
  %[4]s e = __builtin_convertvector(n, %[4]s), half = e >> 1;
  return p * (%[2]s)((half + 127) << 23) * (%[2]s)((e - half + 127) << 23);
}
`, head, t, name, mask, splat, least, most)
}

var vectorBuiltins = map[string]string{
	"exp": "exp", "tanh": "tanh", "sqrt": "sqrt", "abs": "fabs", "floor": "floor", "ceil": "ceil", "round": "rint",
}

func (u *Unit) lanewiseMath(head, name, op, t string, d array.DType, lanes int64) {
	fmt.Fprintf(&u.prelude, "%s%s %s(%s x) { %s y; for (int i = 0; i < %d; i++) y[i] = __builtin_%s%s(x[i]); return y; }\n",
		head, t, name, t, t, lanes, vectorBuiltins[op], ctypes[d].builtin)
}
