package codegen

import (
	"fmt"
	"strings"

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
	case op == "pow" && lanes == 1:
		fmt.Fprintf(&u.prelude, "%s%s %s(%s a, %s b) { %s p = 1; if (b < 0) return a == 1 ? 1 : a == -1 ? (b %% 2 ? -1 : 1) : 0; for (; b; b /= 2, a *= a) if (b %% 2) p *= a; return p; }\n", head, t, name, t, t, t)
	case op == "to_u64":
		fmt.Fprintf(&u.prelude, "%suint64_t %s(%s a) { return a < 0 ? (uint64_t)(int64_t)a : (uint64_t)a; }\n", head, name, t)
	case op == "abs" && lanes == 1:
		fmt.Fprintf(&u.prelude, "%s%s %s(%s a) { return a < 0 ? (%s)-a : a; }\n", head, t, name, t, t)
	case op == "select":
		u.vectorSelect(head, name, t, d, lanes)
	case strings.HasPrefix(op, "across_"):
		u.across(head, name, strings.TrimPrefix(op, "across_"), d, lanes)
	case op == "any":
		u.anyLane(head, name, t, d, lanes)
	case d == array.Float32 && vectorFunctions[op] != "":
		u.vectorMath(head, name, op, lanes)
	case op == "pow":
		u.lanewisePow(head, name, t, d, lanes)
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
