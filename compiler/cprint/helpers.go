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
// fma, or from_TYPE, a cast.
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
	case op == "fma":
		h.Declarations.DeclareFMA()
		h.Declarations.Declare(name, fmt.Sprintf(multiplyAdd, name, h.Head, t, types[d].Builtin, strings.ToUpper(types[d].Builtin)))
	case op == "abs":
		h.function(name, "%s %s(%s a) { return a < 0 ? (%s)(0 - (%s)a) : a; }\n", t, name, t, t, UnsignedOf(d))
	default:
		panic(fmt.Sprintf("cprint: there is no helper %s on %v", op, d))
	}
	return name
}

// Contract returns C that turns the contraction of multiply-adds within an expression ON or OFF, up to the end of the
// block or file. It is off elsewhere. gcc has no such pragma.
func Contract(to string) string {
	return fmt.Sprintf(`#if defined(__OPENCL_C_VERSION__)
#pragma OPENCL FP_CONTRACT %[1]s
#elif defined(__clang__)
#pragma STDC FP_CONTRACT %[1]s
#endif
`, to)
}

// DeclareFMA defines TILTH_FMA where clang has a builtin for multiply-adds that becomes an instruction. Elsewhere it
// fuses within a function, which takes time to inline, if the target has an instruction that is no slower.
func (d *Declarations) DeclareFMA() {
	d.Declare("TILTH_FMA", `#if defined(__clang__) && !defined(__OPENCL_C_VERSION__) && (defined(__FMA__) || defined(__aarch64__) || defined(__NVPTX__))
#if __has_builtin(__builtin_elementwise_fma)
#define TILTH_FMA __builtin_elementwise_fma
#endif
#endif
`)
}

// multiplyAdd declares a * b + c, with one rounding where the target has an instruction for it. It never calls the C
// library.
var multiplyAdd = `#ifdef TILTH_FMA
#define %[1]s TILTH_FMA
#else
%[2]s%[3]s %[1]s(%[3]s a, %[3]s b, %[3]s c) {
` + Contract("ON") + `#if !defined(__clang__) && defined(__FP_FAST_FMA%[5]s)
  return __builtin_fma%[4]s(a, b, c);
#else
  return a * b + c;
#endif
}
#endif
`

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

// Declarations holds the types and helper functions of a translation unit, each once, after its dependencies.
type Declarations struct {
	names []string
	texts map[string]string
}

// Has reports whether a name is declared.
func (d *Declarations) Has(name string) bool {
	_, ok := d.texts[name]
	return ok
}

// Declare adds a declaration under its name, unless it exists.
func (d *Declarations) Declare(name, text string) {
	if d.Has(name) {
		return
	}
	if d.texts == nil {
		d.texts = map[string]string{}
	}
	d.names = append(d.names, name)
	d.texts[name] = text
}

// Include adds the declarations of another unit.
func (d *Declarations) Include(other *Declarations) {
	for _, name := range other.names {
		d.Declare(name, other.texts[name])
	}
}

// Text returns all declarations in order.
func (d *Declarations) Text() string {
	var b strings.Builder
	for _, name := range d.names {
		b.WriteString(d.texts[name])
	}
	return b.String()
}
