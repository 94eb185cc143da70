package cprint

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Dialect describes the differences between C-like languages.
type Dialect struct {
	// Head precedes helper functions.
	Head string
	// Math returns the name of a C library function, such as exp, for a floating-point type.
	Math func(name string, d array.DType) string
	// Index is the type of index arithmetic.
	Index string
	// Half and Float convert between float16 and float, for languages without the type; they are empty otherwise.
	Half, Float string
	// BFloat16, if not empty, converts a float to the bits of a bfloat16, for devices with such an instruction.
	BFloat16 string
}

// C is the dialect of C compilers for CPUs.
var C = Dialect{
	Head:  "static inline __attribute__((unused, always_inline)) ",
	Math:  func(name string, d array.DType) string { return "__builtin_" + name + types[d].Builtin },
	Index: "int64_t",
}

// Helpers declares functions on scalars that kernels call.
type Helpers struct {
	Declarations *Declarations
	Dialect
}

// HelperName returns the name of a helper function for a type and number of lanes.
func HelperName(op string, d array.DType, lanes int64) string {
	return fmt.Sprintf("tilth_%s_%vx%d", op, d, lanes)
}

// Helper declares a function on a scalar type once, and returns its name: an operator on integers, min, max, abs,
// or from_TYPE, a cast.
func (h *Helpers) Helper(op string, d array.DType) string {
	name, t := HelperName(op, d, 1), types[d].Scalar
	switch {
	case h.Declarations.Has(name):
	case h.integerHelper(name, op, d), h.castHelper(name, op, d):
	case op == "min" || op == "max":
		test := map[string]string{"min": "<", "max": ">"}[op]
		nan := ""
		if d.IsFloat() {
			nan = " || a != a"
		}
		h.function(name, "%s %s(%s a, %s b) { return a %s b%s ? a : b; }\n", t, name, t, t, test, nan)
	case op == "abs":
		h.function(name, "%s %s(%s a) { return a < 0 ? (%s)(0 - (%s)a) : a; }\n", t, name, t, t, UnsignedOf(d))
	default:
		panic(fmt.Sprintf("ctext: there is no helper %s on %v", op, d))
	}
	return name
}

// function declares a function.
func (h *Helpers) function(name, format string, args ...any) {
	h.Declarations.Declare(name, h.Head+fmt.Sprintf(format, args...))
}

// castHelper declares the function "from_TYPE" to d; false if op is not a cast.
func (h *Helpers) castHelper(name, op string, d array.DType) bool {
	from := array.ParseDType(strings.TrimPrefix(op, "from_"))
	if !strings.HasPrefix(op, "from_") || from == array.Invalid {
		return false
	}
	body := fromFloat(d)
	switch {
	case from == array.BFloat16:
		body = fromBFloat16
	case d == array.BFloat16 && from == array.Float32 && h.BFloat16 != "":
		body = "  return " + h.BFloat16 + "(x);\n"
	case d == array.BFloat16:
		body = toBFloat16
	case d == array.Float32:
		body = toOdd
	}
	t := types[d].Scalar
	h.function(name, "%s %s(%s x) {\n%s}\n", t, name, types[from].Scalar, strings.ReplaceAll(body, "{t}", t))
	return true
}
