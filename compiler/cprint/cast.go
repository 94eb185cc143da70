package cprint

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Via returns the intermediate type of a cast; ok is false if it is direct. Halves convert only to and from
// float32. Integers that float32 does not hold become bfloat16 through float64, which is then rounded once.
func Via(from, to array.DType) (d array.DType, ok bool) {
	if to == array.BFloat16 && from.IsInt() && from.Bytes() >= 4 {
		return array.Float64, true
	}
	through := IsHalf(from) && to != array.Float32 || IsHalf(to) && from != array.Float32
	return array.Float32, from != to && through
}

// Whole returns the 32- or 64-bit integer type through which package expr casts floating-point numbers to another one.
func Whole(to array.DType) array.DType {
	switch to {
	case array.Int64, array.Uint32:
		return array.Int64
	case array.Uint64:
		return array.Uint64
	}
	return array.Int32
}

// Cast returns a C expression that casts a scalar.
func (h *Helpers) Cast(code string, from, to array.DType) string {
	via, indirect := Via(from, to)
	switch {
	case from == to:
		return code
	case to == array.Bool && !IsHalf(from):
		return fmt.Sprintf("(%s != 0)", code)
	case from == array.Float64 && IsHalf(to):
		return h.Cast(fmt.Sprintf("%s(%s)", h.Helper("from_f64", array.Float32), code), array.Float32, to)
	case indirect:
		return h.Cast(h.Cast(code, from, via), via, to)
	case from == array.BFloat16, to == array.BFloat16:
		return fmt.Sprintf("%s(%s)", h.Helper("from_"+from.String(), to), code)
	case from == array.Float16 && h.Half != "":
		return fmt.Sprintf("%s(%s)", h.Float, code)
	case to == array.Float16 && h.Half != "":
		return fmt.Sprintf("%s(%s)", h.Half, code)
	case from.IsFloat() && to.IsInt():
		whole := Whole(to)
		return h.Cast(fmt.Sprintf("%s(%s)", h.Helper("from_"+from.String(), whole), code), whole, to)
	}
	return fmt.Sprintf("((%s)%s)", types[to].Scalar, code)
}

// fromBFloat16 shifts the bits into position for float.
const fromBFloat16 = "  union { uint32_t u; float f; } v = {(uint32_t)x << 16};\n  return v.f;\n"

// toBFloat16 rounds to nearest, ties to even; NaN stays NaN.
const toBFloat16 = `  union { float f; uint32_t u; } v = {x};
  if (x != x) return ({t})(v.u >> 16 | 0x40);
  return ({t})((v.u + 0x7fff + (v.u >> 16 & 1)) >> 16);
`

// toOdd rounds a double to a float with a last bit of one, unless it is exact: rounding that to 16 bits gives the
// same as rounding the double once (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
const toOdd = `  union { float f; uint32_t u; } v = {({t})x};
  double near = v.f, size = x < 0 ? -x : x;
  if (near != x && x == x && near - near == 0) v.u = (v.u - ((near < 0 ? -near : near) > size)) | 1;
  return v.f;
`

// Limits are the bounds of an integer type: those of the floating-point values that fit, and its smallest and
// largest value.
type Limits struct{ Low, High, Min, Max string }

// IntegerLimits holds those of the types to which floating-point numbers are cast.
var IntegerLimits = map[array.DType]Limits{
	array.Int32:  {"-0x1p+31", "0x1p+31", "INT32_MIN", "INT32_MAX"},
	array.Int64:  {"-0x1p+63", "0x1p+63", "INT64_MIN", "INT64_MAX"},
	array.Uint64: {"0", "0x1p+64", "(uint64_t)({x} < -0x1p+63 ? INT64_MIN : (int64_t){x})", "UINT64_MAX"},
}

// Truncation returns the expression that casts a floating-point number {x} to an integer, with a semicolon.
func Truncation(d array.DType) string {
	l := IntegerLimits[d]
	return fmt.Sprintf("{x} != {x} ? 0 : {x} >= %s ? %s : {x} < %s ? %s : (%s){x};\n", l.High, l.Max, l.Low, l.Min, types[d].Scalar)
}

func fromFloat(d array.DType) string {
	return strings.ReplaceAll("  return "+Truncation(d), "{x}", "x")
}
