package codegen

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
)

// ctype is how C spells an element type.
type ctype struct {
	scalar string
	// mask is the type of a comparison's lanes, a signed integer as wide as the type.
	mask array.DType
	// suffix is that of the type's floating point literals and mathematical builtins.
	literal, builtin string
}

var ctypes = map[array.DType]ctype{
	array.Float32:  {scalar: "float", mask: array.Int32, literal: "f", builtin: "f"},
	array.Float64:  {scalar: "double", mask: array.Int64},
	array.Float16:  {scalar: "_Float16", mask: array.Int16, literal: "f", builtin: "f"},
	array.BFloat16: {scalar: "tilth_bfloat16", mask: array.Int16},
	array.Int8:     {scalar: "int8_t", mask: array.Int8},
	array.Int16:    {scalar: "int16_t", mask: array.Int16},
	array.Int32:    {scalar: "int32_t", mask: array.Int32},
	array.Int64:    {scalar: "int64_t", mask: array.Int64},
	array.Uint8:    {scalar: "uint8_t", mask: array.Int8},
	array.Uint16:   {scalar: "uint16_t", mask: array.Int16},
	array.Uint32:   {scalar: "uint32_t", mask: array.Int32},
	array.Uint64:   {scalar: "uint64_t", mask: array.Int64},
	array.Bool:     {scalar: "uint8_t", mask: array.Int8},
}

// abiName is the type's constant in the kernel ABI.
func abiName(d array.DType) string {
	names := map[array.DType]string{
		array.Float32: "FLOAT32", array.Float64: "FLOAT64", array.Float16: "FLOAT16", array.BFloat16: "BFLOAT16",
		array.Int8: "INT8", array.Int16: "INT16", array.Int32: "INT32", array.Int64: "INT64",
		array.Uint8: "UINT8", array.Uint16: "UINT16", array.Uint32: "UINT32", array.Uint64: "UINT64", array.Bool: "BOOL",
	}
	return "TILTH_" + names[d]
}

// vectorName is the C name of the vector type with that many lanes.
func vectorName(d array.DType, lanes int64) string {
	return fmt.Sprintf("%vx%d", d, lanes)
}

// computes reports whether C's operators on the type mean what package expr's do, in scalars and in vectors.
func computes(d array.DType) bool { return d != array.Bool && !isHalf(d) }

func floatLiteral(v float64, d array.DType) string {
	t := ctypes[d]
	switch {
	case d == array.BFloat16:
		bits := array.New(d)
		bits.SetFloat(0, v)
		return fmt.Sprintf("((%s)%d)", t.scalar, binary.LittleEndian.Uint16(bits.Data))
	case math.IsNaN(v):
		return fmt.Sprintf("__builtin_nan%s(\"\")", t.builtin)
	case math.IsInf(v, 1):
		return fmt.Sprintf("__builtin_inf%s()", t.builtin)
	case math.IsInf(v, -1):
		return fmt.Sprintf("(-__builtin_inf%s())", t.builtin)
	}
	s := strconv.FormatFloat(v, 'x', -1, 64) + t.literal
	if strings.HasPrefix(s, "-") {
		s = "(" + s + ")"
	}
	if d == array.Float16 {
		s = "((" + t.scalar + ")" + s + ")"
	}
	return s
}

func intLiteral(v int64, d array.DType) string {
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
