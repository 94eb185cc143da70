package codegen

import (
	"crypto/sha256"
	"fmt"
	"math"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// fewLookedUp is the number of operations, casts included, that take as long as a lookup with a 128-entry lookup
// instruction. Dequantising and requantising a value takes ten. Measured on Zen 5.
const fewLookedUp = 13

// table declares a lookup table and returns its name.
func (u *Unit) table(a *array.Array) string {
	digest := sha256.Sum256(a.Data)
	name := fmt.Sprintf("tilth_table_%v_%x", a.DType, digest[:8])
	if !u.declarations.Has(name) {
		values := make([]string, a.Len())
		for k := range values {
			values[k] = fmt.Sprint(a.Int(int64(k)))
		}
		u.declarations.Declare(name, fmt.Sprintf("static const %s %s[%d] __attribute__((aligned(64), unused)) = {%s};\n",
			cprint.TypeOf(a.DType).Scalar, name, len(values), strings.Join(values, ", ")))
	}
	return name
}

// lookupHelper declares the function that looks up vectors. The instruction looks each byte up in 128 entries. The
// top bits of the indices select between two results.
func (u *Unit) lookupHelper(d, at array.DType, lanes int64) string {
	name := fmt.Sprintf("tilth_lookup_%v_%v_x%d", d, at, lanes)
	if u.declarations.Has(name) {
		return name
	}
	const register = 64
	t, places, scalar := u.vector(d, lanes), u.vector(array.Uint8, lanes), cprint.TypeOf(d).Scalar
	var body strings.Builder
	if lanes <= register {
		fmt.Fprintf(&body, `#ifdef __AVX512VBMI__
  typedef char quarter __attribute__((vector_size(%d)));
  typedef signed char signs __attribute__((vector_size(%[1]d)));
  const quarter *q = (const quarter *)table, at = (quarter)__builtin_shufflevector((%s)x, (%[2]s)x, %s);
#ifdef __clang__
  quarter low = __builtin_ia32_vpermi2varqi512(q[0], at, q[1]), high = __builtin_ia32_vpermi2varqi512(q[2], at, q[3]);
#else
  quarter low = at, high = at;
  __asm__("vpermi2b %%2, %%1, %%0" : "+v"(low) : "v"(q[0]), "vm"(q[1]));
  __asm__("vpermi2b %%2, %%1, %%0" : "+v"(high) : "v"(q[2]), "vm"(q[3]));
#endif
  quarter upper = (quarter)((signs)at < 0), y = (high & upper) | (low & ~upper);
  return (%s)__builtin_shufflevector(y, y, %s);
#else
`, register, u.vector(array.Int8, lanes), cprint.Indices(0, lanes)+strings.Repeat(", -1", int(register-lanes)), t, cprint.Indices(0, lanes))
	}
	fmt.Fprintf(&body, "  %s at = (%s)x;\n  %s y;\n  for (int k = 0; k < %d; k++) y[k] = table[at[k]];\n  return y;\n", places, places, t, lanes)
	if lanes <= register {
		body.WriteString("#endif\n")
	}
	u.declarations.Declare(name, fmt.Sprintf("static inline __attribute__((unused, always_inline)) %s %s(const %s *table, %s x) {\n%s}\n",
		t, name, scalar, u.vector(at, lanes), body.String()))
	return name
}

// codes is the number of four-bit values.
const codes = 16

// fourBits matches the cast of the four lowest bits of words to float32, minus a number.
func fourBits(e expr.Expr) (words expr.Expr, less float64, ok bool) {
	if n, isDifference := e.(*expr.Binary); isDifference && n.Op == expr.Sub {
		zero, isNumber := n.B.(*expr.Float)
		if !isNumber || math.IsNaN(zero.Value) {
			return nil, 0, false
		}
		words, _, ok = fourBits(n.A)
		_, isCast := n.A.(*expr.Cast)
		return words, zero.Value, ok && isCast
	}
	cast, ok := e.(*expr.Cast)
	if !ok || cast.Type != array.Float32 || cast.A.DType() != array.Int32 {
		return nil, 0, false
	}
	n, ok := cast.A.(*expr.Binary)
	if !ok || n.Op != expr.And {
		return nil, 0, false
	}
	mask, ok := n.B.(*expr.Int)
	return n.A, 0, ok && mask.Value == codes-1
}

// fromFourBits prints such a cast. With AVX-512, one instruction looks each lane's value up in a table.
func (p *printer) fromFourBits(e expr.Expr) (code string, ok bool) {
	words, less, ok := fourBits(e)
	if !ok || p.lanes != codes || !expr.Uses(words, p.lane) {
		return "", false
	}
	return fmt.Sprintf("%s(%s)", p.unit.fourBitsHelper(float32(less)), p.vector(words)), true
}

// fourBitsHelper declares the lookup function.
func (u *Unit) fourBitsHelper(less float32) string {
	name := fmt.Sprintf("tilth_four_bits_less_%08x", math.Float32bits(less))
	if u.declarations.Has(name) {
		return name
	}
	floats, words := u.vector(array.Float32, codes), u.vector(array.Int32, codes)
	values := make([]string, codes)
	for k := range values {
		values[k] = cprint.FloatLiteral(float64(float32(k)-less), array.Float32)
	}
	u.declarations.Declare(name, fmt.Sprintf(`static inline __attribute__((unused, always_inline)) %[1]s %[2]s(%[3]s x) {
#if defined(__AVX512F__) && defined(__clang__)
  typedef float table __attribute__((vector_size(64)));
  typedef int places __attribute__((vector_size(64)));
  return (%[1]s)__builtin_ia32_permvarsf512((table){%[4]s}, (places)x);
#else
  return __builtin_convertvector(x & 15, %[1]s) - %[5]s;
#endif
}
`, floats, name, words, strings.Join(values, ", "), cprint.FloatLiteral(float64(less), array.Float32)))
	return name
}
