package cprint

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Type is the C form of an element type.
type Type struct {
	// Scalar is its name.
	Scalar string
	// Mask is the type of a comparison's lanes, a signed integer as wide as the type.
	Mask array.DType
	// Literal and Builtin are the suffixes of the type's floating-point literals and mathematical builtins.
	Literal, Builtin string
}

// TypeOf returns the C form of an element type.
func TypeOf(d array.DType) Type { return types[d] }

var types = map[array.DType]Type{
	array.Float32:  {Scalar: "float", Mask: array.Int32, Literal: "f", Builtin: "f"},
	array.Float64:  {Scalar: "double", Mask: array.Int64},
	array.Float16:  {Scalar: "_Float16", Mask: array.Int16, Literal: "f", Builtin: "f"},
	array.BFloat16: {Scalar: "tilth_bfloat16", Mask: array.Int16},
	array.Int8:     {Scalar: "int8_t", Mask: array.Int8},
	array.Int16:    {Scalar: "int16_t", Mask: array.Int16},
	array.Int32:    {Scalar: "int32_t", Mask: array.Int32},
	array.Int64:    {Scalar: "int64_t", Mask: array.Int64},
	array.Uint8:    {Scalar: "uint8_t", Mask: array.Int8},
	array.Uint16:   {Scalar: "uint16_t", Mask: array.Int16},
	array.Uint32:   {Scalar: "uint32_t", Mask: array.Int32},
	array.Uint64:   {Scalar: "uint64_t", Mask: array.Int64},
	array.Bool:     {Scalar: "uint8_t", Mask: array.Int8},
}

// Computes reports whether C's operators on the type have the semantics of package expr, for scalars and vectors.
func Computes(d array.DType) bool { return d != array.Bool && !IsHalf(d) }

// IsHalf reports whether a type is one of the 16-bit floating-point types, which are for storage: arithmetic on
// them is done in float32.
func IsHalf(d array.DType) bool { return d == array.Float16 || d == array.BFloat16 }

// FloatLiteral returns a literal of a floating-point type.
func FloatLiteral(v float64, d array.DType) string {
	t := types[d]
	switch {
	case d == array.BFloat16:
		bits := array.New(d)
		bits.SetFloat(0, v)
		return fmt.Sprintf("((%s)%d)", t.Scalar, binary.LittleEndian.Uint16(bits.Data))
	case math.IsNaN(v):
		return fmt.Sprintf("__builtin_nan%s(\"\")", t.Builtin)
	case math.IsInf(v, 1):
		return fmt.Sprintf("__builtin_inf%s()", t.Builtin)
	case math.IsInf(v, -1):
		return fmt.Sprintf("(-__builtin_inf%s())", t.Builtin)
	}
	s := strconv.FormatFloat(v, 'x', -1, 64) + t.Literal
	if strings.HasPrefix(s, "-") {
		s = "(" + s + ")"
	}
	if d == array.Float16 {
		s = "((" + t.Scalar + ")" + s + ")"
	}
	return s
}

// IntLiteral returns a literal of an integer type.
func IntLiteral(v int64, d array.DType) string {
	switch {
	case v == math.MinInt64:
		return "(-INT64_C(9223372036854775807) - 1)"
	case d == array.Uint64:
		return fmt.Sprintf("UINT64_C(%d)", uint64(v))
	case v > math.MaxInt32 || v < math.MinInt32:
		return fmt.Sprintf("(INT64_C(%d))", v)
	case v < 0:
		return fmt.Sprintf("(%d)", v)
	}
	return strconv.FormatInt(v, 10)
}
