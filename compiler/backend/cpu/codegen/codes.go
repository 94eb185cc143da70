package codegen

import (
	"fmt"
	"math"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
)

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
