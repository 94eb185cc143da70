package codegen

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/machine/arm"
	"github.com/tilth-dev/tilth/compiler/machine/x86"
)

// cast returns a C expression that casts a value to another type, as a scalar (lanes 1) or a vector.
func (u *Unit) cast(code string, from, to array.DType, lanes int64) string {
	if lanes == 1 {
		return u.helpers().Cast(code, from, to)
	}
	via, indirect := cprint.Via(from, to)
	switch {
	case from == to:
		return code
	case from == array.Float64 && cprint.IsHalf(to):
		return u.cast(fmt.Sprintf("%s(%s)", u.helper("from_f64", array.Float32, lanes), code), array.Float32, to, lanes)
	case indirect:
		return u.cast(u.cast(code, from, via, lanes), via, to, lanes)
	case from == array.BFloat16, to == array.BFloat16:
		return fmt.Sprintf("%s(%s)", u.helper("from_"+from.String(), to, lanes), code)
	case from.IsFloat() && to.IsInt():
		whole := cprint.Whole(to)
		return u.cast(fmt.Sprintf("%s(%s)", u.helper("from_"+from.String(), whole, lanes), code), whole, to, lanes)
	}
	code = fmt.Sprintf("__builtin_convertvector(%s, %s)", code, u.vector(to, lanes))
	if u.keepsCasts && from.IsInt() && to.IsFloat() {
		return fmt.Sprintf("%s(%s)", u.kept(to, lanes), code)
	}
	return code
}

// kept declares a function that hides the origin of a vector from the compiler. Clang 19 merges a cast and a product
// with a power of two into one instruction on processors with MVE, and may emit a register number instead of the
// exponent. Other compilers do not need it.
func (u *Unit) kept(d array.DType, lanes int64) string {
	t, name, where := u.vector(d, lanes), cprint.HelperName("kept", d, lanes), "w"
	if lanes*d.Bytes() > u.config.VectorBytes { // several registers
		where = "m"
	}
	if !u.declarations.Has(name) {
		u.declarations.Declare(name, fmt.Sprintf("%s%s %s(%s x) {\n#ifdef __clang__\n  __asm__(\"\" : \"+%s\"(x));\n#endif\n  return x;\n}\n", cprint.C.Head, t, name, t, where))
	}
	return name
}

// withinHelper declares the function "within_TYPE", a cast of values that fit to 32 bits. It returns false for any
// other op.
func (u *Unit) withinHelper(head, name, op, t string, lanes int64) bool {
	from := array.ParseDType(strings.TrimPrefix(op, "within_"))
	if !strings.HasPrefix(op, "within_") || from == array.Invalid {
		return false
	}
	x := u.vector(from, lanes)
	u.declarations.Declare(name, fmt.Sprintf("%s%s %s(%s x) { return __builtin_convertvector(%s((%s)(x == x), x, (%s){0}), %s); }\n",
		head, t, name, x, u.helper("select", from, lanes), u.vector(cprint.TypeOf(from).Mask, lanes), x, t))
	return true
}

// castHelper declares the function "from_TYPE", a cast to d. It returns false for any other op.
func (u *Unit) castHelper(head, name, op, t string, d array.DType, lanes int64) bool {
	from := array.ParseDType(strings.TrimPrefix(op, "from_"))
	if !strings.HasPrefix(op, "from_") || from == array.Invalid {
		return false
	}
	var body string
	switch {
	case from == array.BFloat16:
		narrow, wide := u.vector(array.Uint16, lanes), u.vector(array.Uint32, lanes)
		body = fmt.Sprintf("  return ({t})(__builtin_convertvector((%s)x, %s) << 16);\n", narrow, wide)
	case d == array.BFloat16:
		body = u.toBFloat16(lanes)
	case d == array.Float32:
		body = eachLane(lanes, u.helpers().Helper("from_f64", d)+"(x[k]);\n")
	case d == array.Uint64:
		body = eachLane(lanes, strings.ReplaceAll(cprint.Truncation(d), "{x}", "x[k]"))
	default:
		body = u.truncateVector(from, d, lanes)
	}
	u.declarations.Declare(name, fmt.Sprintf("%s%s %s(%s x) {\n%s}\n", head, t, name, u.vector(from, lanes), strings.ReplaceAll(body, "{t}", t)))
	return true
}

// toBFloat16 rounds to the nearest, ties to even; NaN stays NaN.
func (u *Unit) toBFloat16(lanes int64) string {
	bits := u.vector(array.Uint32, lanes)
	return fmt.Sprintf(`  %[1]s v = (%[1]s)x, nan = (%[1]s)(x != x);
  %[1]s rounded = (v + 0x7fff + (v >> 16 & 1)) >> 16, kept = v >> 16 | 0x40;
  return ({t})__builtin_convertvector((rounded & ~nan) | (kept & nan), %[2]s);
`, bits, u.vector(array.Uint16, lanes))
}

// eachLane casts the lanes of a vector individually, given the text of a lane.
func eachLane(lanes int64, lane string) string {
	return fmt.Sprintf("  {t} y;\n  for (int k = 0; k < %d; k++) y[k] = %s  return y;\n", lanes, lane)
}

// truncateVector casts the lanes that fit and saturates the others.
func (u *Unit) truncateVector(from, d array.DType, lanes int64) string {
	l := cprint.IntegerLimits[d]
	suffix := cprint.TypeOf(from).Literal
	mask := u.vector(cprint.TypeOf(from).Mask, lanes)
	fits := fmt.Sprintf("%s(over | under | nan, (%s){0}, x)", u.helper("select", from, lanes), u.vector(from, lanes))
	if from == array.Float64 && d == array.Int32 && u.narrowsIntegers {
		fits = fmt.Sprintf("__builtin_convertvector(%s, %s)", fits, u.vector(array.Int64, lanes))
	}
	return fmt.Sprintf(`  %[1]s over = (%[1]s)(x >= %[2]s), under = (%[1]s)(x < %[3]s), nan = (%[1]s)(x != x);
  {t} whole = __builtin_convertvector(%[4]s, {t});
  {t} most = __builtin_convertvector(over, {t}) & %[5]s, least = __builtin_convertvector(under, {t}) & %[6]s;
  return whole | most | least;
`, mask, l.High+suffix, l.Low+suffix, fits, l.Max, l.Min)
}

// rounds reports whether a cast rounds a computed float32 to bfloat16. The instructions flush denormal numbers to
// zero. That is negligible in a computed result, but not in an element that is only loaded and cast.
func rounds(n *expr.Cast) bool {
	_, loaded := n.A.(*expr.Load)
	return n.Type == array.BFloat16 && n.A.DType() == array.Float32 && !loaded
}

// round returns a C expression that rounds a float32 vector to bfloat16, by an instruction if the machine has one.
func (u *Unit) round(code string, lanes int64) string {
	const from, to = array.Float32, array.BFloat16
	if len(roundings[lanes]) == 0 {
		return u.cast(code, from, to, lanes)
	}
	name := fmt.Sprintf("tilth_round_bf16x%d", lanes)
	if !u.declarations.Has(name) {
		x, y := u.vector(from, lanes), u.vector(to, lanes)
		var body strings.Builder
		branch := "#if"
		for _, r := range roundings[lanes] {
			fmt.Fprintf(&body, "%s %s\n", branch, r.condition)
			branch = "#elif"
			if r.text == "" {
				fmt.Fprintf(&body, "  return %s;\n", u.roundHalves(lanes))
				continue
			}
			fmt.Fprintf(&body, "  %[1]s y;\n  __asm__(\"%[2]s\" : \"=%[3]s\"(y) : \"%[3]s\"(x));\n  return y;\n", y, r.text, r.register)
		}
		fmt.Fprintf(&body, "#else\n  return %s;\n#endif\n", u.cast("x", from, to, lanes))
		u.declarations.Declare(name, fmt.Sprintf("static inline __attribute__((unused, always_inline)) %s %s(%s x) {\n%s}\n", y, name, x, body.String()))
	}
	return fmt.Sprintf("%s(%s)", name, code)
}

// roundHalves rounds each half of the vector x separately.
func (u *Unit) roundHalves(lanes int64) string {
	half := func(first int64) string {
		return u.round(fmt.Sprintf("__builtin_shufflevector(x, x, %s)", cprint.Indices(first, lanes/2)), lanes/2)
	}
	return fmt.Sprintf("__builtin_shufflevector(%s, %s, %s)", half(0), half(lanes/2), cprint.Indices(0, lanes))
}

// rounding is an instruction, as assembly between registers of a class, guarded by macros. An empty text means that
// an instruction exists for half as many lanes.
type rounding struct{ condition, text, register string }

const x86Rounding = "vcvtneps2bf16 %1, %0"

// roundings maps a number of lanes to its instructions. Their result occupies half a register.
var roundings = map[int64][]rounding{
	4:  {{arm.HasBF16, "bfcvtn %0.4h, %1.4s", "w"}},
	8:  {{x86.HasBF16VL, x86Rounding, "v"}, {arm.HasBF16, "", ""}},
	16: {{x86.HasBF16, x86Rounding, "v"}},
	32: {{x86.HasBF16, "", ""}},
}
