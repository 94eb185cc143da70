package codegen

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/cprint"
)

// vectorFunctions holds mathematical functions on float vectors, written with the compilers' generic vector
// arithmetic so that every target has them. {f} is the vector type; {i} int32_t, {d} double, {l} int64_t and {u}
// uint64_t are vectors of the same number of lanes; {name} is the function; {select}, {min} and {max} are helpers on
// {f}. Denormal numbers, infinities and NaN behave as in the C library. Polynomials are minimax fits (Lawson's
// iteration) of this project. Reductions follow Cody and Waite, "Software Manual for the Elementary Functions"
// (1980). TestVectorMathIsAccurate asserts the largest errors, in units in the last place over a sweep of all floats.
var vectorFunctions = map[string]string{
	"exp": vectorExp, "exp_part": vectorExpPart, "exp_all": vectorExpAll, "exp_far": vectorExpFar,
	"logistic": vectorLogistic, "log": vectorLog,
	"tanh": vectorTanh, "erf": vectorErf, "sin": vectorSin, "cos": vectorCos, "pow": vectorPow,
}

// inDoubles lists the functions that compute in double. Microcontrollers lack double or vectors of it, so the C
// library is faster there.
var inDoubles = map[string]bool{"sin": true, "cos": true, "pow": true}

// vectorExp uses x = n ln2 + r with |r| <= ln2/2, computes e^r by a polynomial of degree 6, and adds n to the
// exponent bits. Adding 1.5*2^23 rounds to an integer in the lowest bits. Values far below zero, such as masked
// attention scores, become zero. Vectors with any other lane whose result may not be a normal number are rare and
// computed separately. The test takes a third less time than arithmetic that handles all cases.
const vectorExp = `{f} {name}({f} x) {
  {i} zero = x < -104.0f, far = (({f})(({i})x & 0x7fffffff) <= 87.3f) == 0;
  if (__builtin_expect({any}(far & ~zero), 0)) return {exp_far}(x);
  {f} t = {fma}(x, {k}(0x1.715476p+0f), {k}(0x1.8p+23f)), n = t - 0x1.8p+23f;
  return ({f})((({i}){exp_part}(x, n) + (({i})t << 23)) & ~zero);
}
`

// vectorExpPart computes e^(x - n ln2).
const vectorExpPart = `{f} {name}({f} x, {f} n) {
  {f} r = {fma}(n, {k}(-0x1.7f7d1cp-20f), {fma}(n, {k}(-0x1.62e4p-1f), x));
  {f} p = {fma}(r, {k}(0x1.6a23cep-10f), {k}(0x1.123a2p-7f));
  p = {fma}(p, r, {k}(0x1.5558f2p-5f));
  p = {fma}(p, r, {k}(0x1.555492p-3f));
  p = {fma}(p, r, {k}(0x1.fffffcp-2f));
  p = {fma}(p, r, {k}(1.0f));
  return {fma}(p, r, {k}(1.0f));
}
`

// vectorExpAll computes e^x for all x without a branch: it applies 2^n in two steps, which reach infinity and
// denormal results. It is used in the epilogue of a tile of accumulators, where a possible call would make compilers
// spill all of them.
const vectorExpAll = `{f} {name}({f} x) {
  {f} y = {min}({f}_splat(89.0f), {max}({f}_splat(-104.0f), x));
  {f} t = {fma}(y, {k}(0x1.715476p+0f), {k}(0x1.8p+23f)), n = t - 0x1.8p+23f;
  {i} e = ({i})t - 0x4b400000, half = e >> 1;
  return {exp_part}(y, n) * ({f})((half + 127) << 23) * ({f})((e - half + 127) << 23);
}
`

// vectorExpFar handles the rare cases out of line.
const vectorExpFar = `static __attribute__((unused, noinline, cold)) {f} {name}({f} x) { return {exp_all}(x); }
`

// vectorLog uses x = m 2^n with m between the roots of 1/2 and 2, and log(m) = f - f*f/2 + f*f*f P(f) with f = m-1.
const vectorLog = `{f} {name}({f} x) {
  {i} tiny = x < 0x1p-126f;
  {f} y = {select}(tiny, x * 0x1p+23f, x);
  {i} b = ({i})y - 0x3f3504f3;
  {f} n = __builtin_convertvector(b >> 23, {f}) + {select}(tiny, {f}_splat(-23.0f), {f}_splat(0.0f));
  {f} f = ({f})((b & 0x7fffff) + 0x3f3504f3) - 1.0f, s = f * f;
  {f} p = {fma}(f, {k}(-0x1.38b57ep-4f), {k}(0x1.055b6ep-3f));
  p = {fma}(p, f, {k}(-0x1.0d8544p-3f));
  p = {fma}(p, f, {k}(0x1.22da1cp-3f));
  p = {fma}(p, f, {k}(-0x1.547244p-3f));
  p = {fma}(p, f, {k}(0x1.99a008p-3f));
  p = {fma}(p, f, {k}(-0x1.000226p-2f));
  p = {fma}(p, f, {k}(0x1.555554p-2f));
  {f} r = {fma}(s, {k}(-0.5f), {fma}(n, {k}(0x1.7f7d1cp-20f), p * f * s)) + f;
  r = {fma}(n, {k}(0x1.62e4p-1f), r);
  r = {select}(x < __builtin_inff(), r, x);
  return {select}(x > 0.0f, r, {select}(x == 0.0f, {f}_splat(-__builtin_inff()), {f}_splat(__builtin_nanf(""))));
}
`

// vectorTanh computes x (k + P/Q) with polynomials of x*x, up to where the result rounds to one. The constant k
// halves the weight of the quotient and of its rounding errors. One formula for all x, in Estrin's order, shortens
// the dependency chain that dominates the time: it takes a third of the time of two formulas with a selection.
const vectorTanh = `{f} {name}({f} x) {
  {f} c = {max}({f}_splat(-9.01f), {min}({f}_splat(9.01f), x)), z = c * c, w = z * z;
  {f} p = {fma}(w, {k}(-0x1.4d0812p-23f), {fma}(z, {k}(-0x1.77cf38p-15f), {k}(-0x1.e830c4p-11f)));
  {f} q = {fma}(w, {k}(0x1.216ad8p-20f), {fma}(z, {k}(0x1.ddeb64p-12f), {k}(0x1.262472p-5f)));
  p = {fma}(p, w, {fma}(z, {k}(0x1.4d0d0cp-4f), {k}(0x1.2a0f64p+0f)));
  q = {fma}(q, w, {fma}(z, {k}(0x1.4be872p-1f), {k}(0x1.6341fcp+0f)));
  return {max}({f}_splat(-1.0f), {min}({f}_splat(1.0f), (p / q + 0x1.49bc0ap-3f) * c));
}
`

// vectorErf has the same form as vectorTanh.
const vectorErf = `{f} {name}({f} x) {
  {f} c = {max}({f}_splat(-3.92f), {min}({f}_splat(3.92f), x)), z = c * c, w = z * z;
  {f} p = {fma}({fma}(z, {k}(-0x1.33263ep-16f), {k}(-0x1.57f43p-13f)), w, {fma}(z, {k}(-0x1.fc446cp-10f), {k}(0x1.c94836p-6f)));
  {f} q = {fma}({fma}(z, {k}(0x1.1bac8cp-14f), {k}(0x1.0e8d1ep-9f)), w, {fma}(z, {k}(0x1.b37664p-6f), {k}(0x1.9eef94p-3f)));
  p = {fma}(p, w, {fma}(z, {k}(0x1.8fb13ap-5f), {k}(0x1.6d638ap+0f)));
  q = {fma}(q, w, {fma}(z, {k}(0x1.c86cc4p-1f), {k}(0x1.c68966p+0f)));
  return {max}({f}_splat(-1.0f), {min}({f}_splat(1.0f), (p / q + 0x1.4c4be6p-2f) * c));
}
`

// trigonometric uses |x| = n pi/2 + r, reduced in double precision. The first part of pi/2 has 33 bits, so its
// product with n is exact. The result is the sine or cosine of r, by the quadrant n plus a shift. The C library
// computes lanes beyond 2^20.
//
// The format arguments are the shift of the quadrant, the sign and the C library's name.
const trigonometric = `{f} {name}({f} x) {
  {f} a = ({f})(({i})x & 0x7fffffff);
  {d} y = __builtin_convertvector({select}(a <= 0x1p+20f, a, {f}_splat(0.0f)), {d});
  {d} t = {dfma}(y, {dk}(0x1.45f306dc9c883p-1), {dk}(0x1.8p+52)), n = t - 0x1.8p+52;
  {d} rest = {dfma}(n, {dk}(-0x1.0b4611a626331p-34), {dfma}(n, {dk}(-0x1.921fb544p+0), y));
  {f} r = __builtin_convertvector(rest, {f}), z = r * r;
  {i} q = __builtin_convertvector(({l})t & 3, {i}) + %d;
  {f} s = {fma}(z, {k}(-0x1.994062p-13f), {k}(0x1.11073p-7f));
  s = {fma}(s, z, {k}(-0x1.555546p-3f));
  s = {fma}(s * z, r, r);
  {f} c = {fma}(z, {k}(0x1.99e86ap-16f), {k}(-0x1.6c0c28p-10f));
  c = {fma}(c, z, {k}(0x1.55554ap-5f));
  c = {fma}(z, {k}(-0.5f), c * z * z) + 1.0f;
  {f} v = ({f})(({i}){select}((q & 1) == 0, s, c) ^ ((q & 2) << 30)%s);
  {i} far = (a <= 0x1p+20f) == 0;
  if (__builtin_expect({any}(far), 0)) for (int k = 0; k < {lanes}; k++) if (far[k]) v[k] = __builtin_%sf(x[k]);
  return v;
}
`

var (
	vectorSin = fmt.Sprintf(trigonometric, 0, " ^ (({i})x & (-0x7fffffff - 1))", "sin")
	vectorCos = fmt.Sprintf(trigonometric, 1, "", "cos")
)

// vectorPow computes 2^(y log2 x) in double precision: log2 of the mantissa by the series of atanh, 2^f by its Taylor
// polynomial. The C library computes lanes with a non-positive or infinite base or a non-finite exponent.
const vectorPow = `{f} {name}({f} x, {f} y) {
  {i} far = ((x > 0.0f) & (x < __builtin_inff()) & (y - y == 0.0f)) == 0;
  {u} b = ({u})__builtin_convertvector({select}(far, {f}_splat(1.0f), x), {d}) + 0x095f619980c433ull;
  {d} n = ({d})(b >> 52 | 0x4330000000000000ull) - 0x1.00000000003ffp+52;
  {d} m = ({d})((b & 0xfffffffffffffull) + 0x3fe6a09e667f3bcdull);
  {d} s = (m - 1.0) / (m + 1.0), z = s * s;
  {d} p = {dfma}(z, {dk}(1.0 / 13), {dk}(1.0 / 11));
  p = {dfma}(p, z, {dk}(1.0 / 9));
  p = {dfma}(p, z, {dk}(1.0 / 7));
  p = {dfma}(p, z, {dk}(1.0 / 5));
  p = {dfma}(p, z, {dk}(1.0 / 3));
  {d} e = {dfma}({dfma}(p * z, s, s), {dk}(0x1.71547652b82fep+1), n) * __builtin_convertvector({select}(far, {f}_splat(0.0f), y), {d});
  e = {dmin}({d}_splat(300.0), {dmax}({d}_splat(-300.0), e));
  {d} t = e + 0x1.8p+52, r = (e - (t - 0x1.8p+52)) * 0x1.62e42fefa39efp-1;
  {d} w = {dfma}(r, {dk}(1.0 / 40320), {dk}(1.0 / 5040));
  w = {dfma}(w, r, {dk}(1.0 / 720));
  w = {dfma}(w, r, {dk}(1.0 / 120));
  w = {dfma}(w, r, {dk}(1.0 / 24));
  w = {dfma}(w, r, {dk}(1.0 / 6));
  w = {dfma}(w, r, {dk}(0.5));
  w = {dfma}(w, r, {dk}(1.0));
  w = {dfma}(w, r, {dk}(1.0));
  {f} v = __builtin_convertvector(({d})(({l})w + (({l})t << 52)), {f});
  if (__builtin_expect({any}(far), 0)) for (int k = 0; k < {lanes}; k++) if (far[k]) v[k] = __builtin_powf(x[k], y[k]);
  return v;
}
`

// vectorMath declares a function of vectorFunctions with the helpers and types that it uses.
func (u *Unit) vectorMath(head, name, op string, lanes int64) {
	text := vectorFunctions[op]
	declare := []struct {
		mark string
		name func() string
	}{
		{"{f}", func() string { return u.vector(array.Float32, lanes) }},
		{"{i}", func() string { return u.vector(array.Int32, lanes) }},
		{"{d}", func() string { return u.vector(array.Float64, lanes) }},
		{"{l}", func() string { return u.vector(array.Int64, lanes) }},
		{"{u}", func() string { return u.vector(array.Uint64, lanes) }},
		{"{select}", func() string { return u.helper("select", array.Float32, lanes) }},
		{"{any}", func() string { return u.helper("any", array.Int32, lanes) }},
		{"{min}", func() string { return u.helper("min", array.Float32, lanes) }},
		{"{max}", func() string { return u.helper("max", array.Float32, lanes) }},
		{"{dmin}", func() string { return u.helper("min", array.Float64, lanes) }},
		{"{dmax}", func() string { return u.helper("max", array.Float64, lanes) }},
		{"{k}", func() string { return u.vector(array.Float32, lanes) + "_splat" }},
		{"{dk}", func() string { return u.vector(array.Float64, lanes) + "_splat" }},
		{"{fma}", func() string { return u.helper("fma", array.Float32, lanes) }},
		{"{dfma}", func() string { return u.helper("fma", array.Float64, lanes) }},
		{"{exp_part}", func() string { return u.helper("exp_part", array.Float32, lanes) }},
		{"{exp_all}", func() string { return u.helper("exp_all", array.Float32, lanes) }},
		{"{exp_far}", func() string { return u.helper("exp_far", array.Float32, lanes) }},
		{"{lanes}", func() string { return fmt.Sprint(lanes) }},
		{"{name}", func() string { return name }},
	}
	var marks []string
	for _, d := range declare {
		if strings.Contains(text, d.mark) {
			marks = append(marks, d.mark, d.name())
		}
	}
	if strings.HasPrefix(text, "static") {
		head = ""
	}
	u.declarations.Declare(name, head+strings.NewReplacer(marks...).Replace(text))
}

// vectorSelect declares the choice between two vectors by a mask whose lanes are 0 or -1.
func (u *Unit) vectorSelect(head, name, t string, d array.DType, lanes int64) {
	mask := u.vector(cprint.TypeOf(d).Mask, lanes)
	u.declarations.Declare(name, fmt.Sprintf(`%[1]s%[2]s %[3]s(%[4]s m, %[2]s a, %[2]s b) {
#ifdef __clang__
  return m ? a : b;
#else
  return (%[2]s)(((%[4]s)a & m) | ((%[4]s)b & ~m));
#endif
}
`, head, t, name, mask))
}

// anyLane declares a test that reports whether any lane of a mask is set.
func (u *Unit) anyLane(head, name, t string, d array.DType, lanes int64) {
	u.declarations.Declare(name, fmt.Sprintf(`%sint %s(%s m) {
#ifdef __clang__
  return __builtin_reduce_or(m) != 0;
#else
  %s any = 0;
  for (int k = 0; k < %d; k++) any |= m[k];
  return any != 0;
#endif
}
`, head, name, t, cprint.TypeOf(d).Scalar, lanes))
}

// lanewiseBuiltins lists the C library functions that are applied lane by lane.
var lanewiseBuiltins = map[string]string{
	"exp": "exp", "log": "log", "sqrt": "sqrt", "tanh": "tanh", "erf": "erf", "abs": "fabs", "floor": "floor", "ceil": "ceil",
	"round": "rint", "sin": "sin", "cos": "cos", "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "sinh": "sinh",
	"cosh": "cosh", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh",
}

// wholeBuiltins lists the functions that machines have instructions for. Clang accepts them on vectors, but does not
// revectorise lanes at the optimisation level of kernels.
var wholeBuiltins = map[string]string{"sqrt": "sqrt", "abs": "abs", "floor": "floor", "ceil": "ceil", "round": "rint"}

func (u *Unit) lanewiseMath(head, name, op, t string, d array.DType, lanes int64) {
	loop := fmt.Sprintf("%s y; for (int i = 0; i < %d; i++) y[i] = __builtin_%s%s(x[i]); return y;", t, lanes, lanewiseBuiltins[op], cprint.TypeOf(d).Builtin)
	if whole := wholeBuiltins[op]; whole != "" && lanes > 1 {
		loop = fmt.Sprintf("\n#ifdef __clang__\n  return __builtin_elementwise_%s(x);\n#else\n  %s\n#endif\n", whole, loop)
	}
	u.declarations.Declare(name, fmt.Sprintf("%s%s %s(%s x) { %s }\n", head, t, name, t, loop))
}

// lanewisePow computes x to the power of y, lane by lane.
func (u *Unit) lanewisePow(head, name, t string, d array.DType, lanes int64) {
	u.declarations.Declare(name, fmt.Sprintf("%s%s %s(%s x, %s y) { %s v; for (int i = 0; i < %d; i++) v[i] = __builtin_pow%s(x[i], y[i]); return v; }\n",
		head, t, name, t, t, t, lanes, cprint.TypeOf(d).Builtin))
}
