/* Mathematical functions in plain C, since kernels have no library: tilth_exp and so on for doubles, with an f
 * after the name for floats. They give the same results on every kind of device, except for multiply-adds that a compiler
 * fuses, which is allowed here because each function implements a single operator.
 * Infinities, NaN and denormal numbers are treated as in C. A test asserts the error bounds in docs/gpu.md. */
#if defined(__OPENCL_C_VERSION__) && !defined(cl_khr_fp64)
#define TILTH_NO_DOUBLES
#endif
#define TILTH_MATH static inline __attribute__((unused, always_inline))
#define TILTH_INFINITY __builtin_inf()
#define TILTH_NAN __builtin_nan("")

/* A quotient of numbers that are neither tiny nor huge, for which a device may have something quicker than C's. */
#ifdef NVPTX_RATIO
#define TILTH_RATIO(p, q) NVPTX_RATIO(p, q)
#else
#define TILTH_RATIO(p, q) ((p) / (q))
#endif

TILTH_MATH uint32_t tilth_bitsf(float x) {
  union { float f; uint32_t u; } v = {x};
  return v.u;
}

TILTH_MATH float tilth_float(uint32_t bits) {
  union { uint32_t u; float f; } v = {bits};
  return v.f;
}

#ifndef TILTH_NO_DOUBLES
TILTH_MATH uint64_t tilth_bits(double x) {
  union { double d; uint64_t u; } v = {x};
  return v.u;
}

TILTH_MATH double tilth_double(uint64_t bits) {
  union { uint64_t u; double d; } v = {bits};
  return v.d;
}

/* 2^n for -1022 <= n <= 1023. */
TILTH_MATH double tilth_power_of_2(int n) { return tilth_double((uint64_t)(n + 1023) << 52); }

/* e^(x + small) = 2^n e^r with |r| <= ln2 / 2, and e^r by its series; 2^n in two steps, which reach infinity and
 * denormal results. All but the last sum has digits to spare, so that a result which is a double is met. */
TILTH_MATH double tilth_exp_sum(double x, double small) {
  double y = x < -750 ? -750 : x > 750 ? 750 : x, n = __builtin_rint(y * 0x1.71547652b82fep+0);
  double t = y - n * 0x1.62e42fefa0000p-1, c = n * 0x1.cf79abc9e3b3ap-40 - small, r = t - c, lost = (t - r) - c;
  double p = 1.0 / 6227020800;
  p = p * r + 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = r + (p * r * r + lost) + 1.0;
  int whole = x == x ? (int)n : 0, first = whole / 2;
  return x == x ? p * tilth_power_of_2(first) * tilth_power_of_2(whole - first) : x;
}

TILTH_MATH double tilth_exp(double x) { return tilth_exp_sum(x, 0); }

/* e^x - 1, by its series where the difference would lose digits. */
TILTH_MATH double tilth_expm1(double x) {
  if (!(__builtin_fabs(x) < 0.5)) return tilth_exp(x) - 1;
  double p = 1.0 / 355687428096000;
  p = p * x + 1.0 / 20922789888000;
  p = p * x + 1.0 / 1307674368000;
  p = p * x + 1.0 / 87178291200;
  p = p * x + 1.0 / 6227020800;
  p = p * x + 1.0 / 479001600;
  p = p * x + 1.0 / 39916800;
  p = p * x + 1.0 / 3628800;
  p = p * x + 1.0 / 362880;
  p = p * x + 1.0 / 40320;
  p = p * x + 1.0 / 5040;
  p = p * x + 1.0 / 720;
  p = p * x + 1.0 / 120;
  p = p * x + 1.0 / 24;
  p = p * x + 1.0 / 6;
  p = p * x + 0.5;
  return p * x * x + x;
}

/* log x for positive and finite x, as the sum of a number and a small one. x = m 2^n with m between the roots of 1/2
 * and 2, and log m = 2 atanh s with s = (m - 1) / (m + 1), whose rounding error a multiply-add finds. */
TILTH_MATH double tilth_log_parts(double x, double *small) {
  double tiny = x < 0x1p-1022 ? 54 : 0, y = tiny > 0 ? x * 0x1p+54 : x;
  uint64_t b = tilth_bits(y) + (0x3ff0000000000000 - 0x3fe6a09e667f3bcd);
  double n = (double)((int)(b >> 52) - 1023) - tiny, f = tilth_double((b & 0xfffffffffffff) + 0x3fe6a09e667f3bcd) - 1;
  double below = 2 + f, lost = f - (below - 2), s = f / below, z = s * s;
  double rest = (__builtin_fma(-s, below, f) - s * lost) / below;
  double p = 2.0 / 23;
  p = p * z + 2.0 / 21;
  p = p * z + 2.0 / 19;
  p = p * z + 2.0 / 17;
  p = p * z + 2.0 / 15;
  p = p * z + 2.0 / 13;
  p = p * z + 2.0 / 11;
  p = p * z + 2.0 / 9;
  p = p * z + 2.0 / 7;
  p = p * z + 2.0 / 5;
  p = p * z + 2.0 / 3;
  double whole = n * 0x1.62e42fefa0000p-1, sum = whole + 2 * s;
  double others = (whole - sum) + 2 * s + (n * 0x1.cf79abc9e3b3ap-40 + 2 * rest + p * z * s);
  double large = sum + others;
  *small = others - (large - sum);
  return large;
}

TILTH_MATH double tilth_log(double x) {
  if (!(x > 0)) return x == 0 ? -TILTH_INFINITY : TILTH_NAN;
  if (x == TILTH_INFINITY) return x;
  double small, large = tilth_log_parts(x, &small);
  return large + small;
}

/* log(1 + x): what the sum lost is made up for by the quotient (Kahan). */
TILTH_MATH double tilth_log1p(double x) {
  double u = 1 + x;
  if (u == 1) return x;
  return u < TILTH_INFINITY && u > 0 ? tilth_log(u) * (x / (u - 1)) : tilth_log(u);
}

/* x^y = e^(y log x), the logarithm and the product in two parts each. */
TILTH_MATH double tilth_pow(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return TILTH_NAN;
  double a = __builtin_fabs(x);
  int odd = __builtin_fabs(y) < 0x1p53 && (int64_t)y == y && ((int64_t)y & 1), negative = tilth_bits(x) >> 63 != 0;
  double sign = negative && odd ? -1 : 1;
  if (a == 0 || a == TILTH_INFINITY) return (a == 0) == (y < 0) ? sign * TILTH_INFINITY : sign * 0.0;
  if (__builtin_fabs(y) == TILTH_INFINITY) return a == 1 ? 1 : (a < 1) == (y < 0) ? TILTH_INFINITY : 0;
  if (negative && __builtin_rint(y) != y) return TILTH_NAN;
  double small, large = tilth_log_parts(a, &small);
  double product = y * large, rest = __builtin_fma(y, large, -product) + y * small;
  return sign * tilth_exp_sum(product, __builtin_fabs(product) < 800 ? rest : 0);
}

/* The first digits of 2 / pi, behind 64 zeros. */
#ifdef __OPENCL_C_VERSION__
__constant
#elif defined(__NVPTX__)
static __attribute__((address_space(4)))
#else
static
#endif
const uint64_t tilth_two_by_pi[21] __attribute__((unused)) = {
    0,
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
    0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4,
    0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d,
};

/* 64 of the digits, from one on. */
TILTH_MATH uint64_t tilth_digits(int word, int shift) {
  return tilth_two_by_pi[word] << shift | (shift ? tilth_two_by_pi[word + 1] >> (64 - shift) : 0);
}

/* The upper 64 bits of a product. */
#ifdef __OPENCL_C_VERSION__
#define TILTH_UPPER(a, b) mul_hi((a), (b))
#else
#define TILTH_UPPER(a, b) ((uint64_t)((unsigned __int128)(a) * (b) >> 64))
#endif

/* x = n pi/2 + r with |r| <= pi/4 or little more, for finite x; returns n modulo 4. Small numbers by three parts of
 * pi/2 (Cody and Waite), others by those digits of 2 / pi that matter (Payne and Hanek). */
TILTH_MATH int tilth_quadrant(double x, double *r) {
  if (__builtin_fabs(x) < 0x1p+20) {
    double n = __builtin_rint(x * 0x1.45f306dc9c883p-1);
    *r = ((x - n * 0x1.921fb544p+0) - n * 0x1.0b4611a6p-34) - n * 0x1.3198a2e037073p-69;
    return (int)n & 3;
  }
  uint64_t bits = tilth_bits(x), m = (bits & 0xfffffffffffff) | 0x10000000000000;
  int first = (int)(bits >> 52 & 2047) - 1075 - 2 + 64, word = first / 64, shift = first % 64;
  uint64_t d1 = tilth_digits(word + 1, shift), d2 = tilth_digits(word + 2, shift), next = m * d1 + TILTH_UPPER(m, d2);
  uint64_t high = m * tilth_digits(word, shift) + TILTH_UPPER(m, d1) + (next < m * d1);
  int64_t fraction = (int64_t)(high << 2 | next >> 62);
  int n = (int)(high >> 62) + (fraction < 0);
  double f = (double)fraction * 0x1p-64 + (double)(next << 2 | m * d2 >> 62) * 0x1p-128;
  *r = (x < 0 ? -f : f) * 0x1.921fb54442d18p+0;
  return (x < 0 ? -n : n) & 3;
}

/* The sine (of quadrant 0) or cosine (1) of r, and so on. */
TILTH_MATH double tilth_turned(int quadrant, double r) {
  double z = r * r, p;
  if (quadrant & 1) {
    p = z * (1.0 / 20922789888000) - 1.0 / 87178291200;
    p = p * z + 1.0 / 479001600;
    p = p * z - 1.0 / 3628800;
    p = p * z + 1.0 / 40320;
    p = p * z - 1.0 / 720;
    p = p * z + 1.0 / 24;
    double second = z * 0.5, c = 1 - second;
    p = c + ((1 - c - second) + p * z * z);
  } else {
    p = z * (1.0 / 355687428096000) - 1.0 / 1307674368000;
    p = p * z + 1.0 / 6227020800;
    p = p * z - 1.0 / 39916800;
    p = p * z + 1.0 / 362880;
    p = p * z - 1.0 / 5040;
    p = p * z + 1.0 / 120;
    p = p * z - 1.0 / 6;
    p = p * z * r + r;
  }
  return quadrant & 2 ? -p : p;
}

TILTH_MATH double tilth_sin(double x) {
  double r;
  if (!(__builtin_fabs(x) < TILTH_INFINITY)) return TILTH_NAN;
  int quadrant = tilth_quadrant(x, &r);
  return x == 0 ? x : tilth_turned(quadrant, r);
}

TILTH_MATH double tilth_cos(double x) {
  double r;
  if (!(__builtin_fabs(x) < TILTH_INFINITY)) return TILTH_NAN;
  int quadrant = tilth_quadrant(x, &r);
  return tilth_turned(quadrant + 1, r);
}

TILTH_MATH double tilth_tan(double x) {
  double r;
  if (!(__builtin_fabs(x) < TILTH_INFINITY)) return TILTH_NAN;
  int quadrant = tilth_quadrant(x, &r);
  return x == 0 ? x : tilth_turned(quadrant, r) / tilth_turned(quadrant + 1, r);
}

/* The arc of a tangent, of its inverse above 1, of (x - 1) / (x + 1) above tan(pi / 8), and so by its series up to
 * there. */
TILTH_MATH double tilth_atan(double x) {
  double a = __builtin_fabs(x), b = a > 1 ? 1 / a : a;
  int turned = b > 0x1.a827999fcef31p-2;
  double t = turned ? (b - 1) / (b + 1) : b, z = t * t, p = 1.0 / 41;
  p = 1.0 / 39 - p * z;
  p = 1.0 / 37 - p * z;
  p = 1.0 / 35 - p * z;
  p = 1.0 / 33 - p * z;
  p = 1.0 / 31 - p * z;
  p = 1.0 / 29 - p * z;
  p = 1.0 / 27 - p * z;
  p = 1.0 / 25 - p * z;
  p = 1.0 / 23 - p * z;
  p = 1.0 / 21 - p * z;
  p = 1.0 / 19 - p * z;
  p = 1.0 / 17 - p * z;
  p = 1.0 / 15 - p * z;
  p = 1.0 / 13 - p * z;
  p = 1.0 / 11 - p * z;
  p = 1.0 / 9 - p * z;
  p = 1.0 / 7 - p * z;
  p = 1.0 / 5 - p * z;
  p = 1.0 / 3 - p * z;
  double arc = t - p * z * t;
  if (turned) arc = 0x1.921fb54442d18p-1 + (arc + 0x1.1a62633145c07p-55);
  if (a > 1) arc = 0x1.921fb54442d18p+0 - (arc - 0x1.1a62633145c07p-54);
  return __builtin_copysign(arc, x);
}

TILTH_MATH double tilth_asin(double x) { return x == 0 ? x : tilth_atan(x / __builtin_sqrt((1 - x) * (1 + x))); }
TILTH_MATH double tilth_acos(double x) { return 2 * tilth_atan(__builtin_sqrt((1 - x) / (1 + x))); }

/* Beyond 700 e^x overflows before its half does. */
TILTH_MATH double tilth_sinh(double x) {
  double a = __builtin_fabs(x), t = tilth_expm1(a), h = tilth_exp(a / 2);
  return __builtin_copysign(a < 700 ? (t + t / (t + 1)) / 2 : h / 2 * h, x);
}

TILTH_MATH double tilth_cosh(double x) {
  double a = __builtin_fabs(x), e = tilth_exp(a), h = tilth_exp(a / 2);
  return a < 700 ? (e + 1 / e) / 2 : h / 2 * h;
}

TILTH_MATH double tilth_tanh(double x) {
  double a = __builtin_fabs(x), t = tilth_expm1(2 * (a < 30 ? a : 30));
  return x != x ? x : __builtin_copysign(t / (t + 2), x);
}

TILTH_MATH double tilth_asinh(double x) {
  double a = __builtin_fabs(x), large = tilth_log(a) + 0x1.62e42fefa39efp-1;
  double small = tilth_log1p(a + a * a / (1 + __builtin_sqrt(a * a + 1)));
  return x != x ? x : __builtin_copysign(a < 0x1p+28 ? small : large, x);
}

TILTH_MATH double tilth_acosh(double x) {
  double t = x - 1;
  if (!(x >= 1)) return TILTH_NAN;
  return x < 0x1p+28 ? tilth_log1p(t + __builtin_sqrt(2 * t + t * t)) : tilth_log(x) + 0x1.62e42fefa39efp-1;
}

TILTH_MATH double tilth_atanh(double x) {
  double a = __builtin_fabs(x);
  return __builtin_copysign(0.5 * tilth_log1p(2 * a / (1 - a)), x);
}

/* The series e^(-x^2) sum of 2^n x^(2n+1) / (1 3 5 ... (2n+1)), all of whose terms are positive; from 3 on 1 less the
 * continued fraction of erfc (Abramowitz and Stegun, 7.1.6 and 7.1.14). */
TILTH_MATH double tilth_erf(double x) {
  double a = __builtin_fabs(x), b = a < 6 ? a : 6, z = b * b, y;
  if (x != x) return x;
  if (b < 3) {
    double term = b, sum = b;
    for (int n = 1; n < 60; n++) term *= 2 * z / (2 * n + 1), sum += term;
    y = 0x1.20dd750429b6dp+0 * tilth_exp(-z) * sum;
  } else {
    double below = b;
    for (int n = 60; n > 0; n--) below = b + n * 0.5 / below;
    y = 1 - 0x1.20dd750429b6dp-1 * tilth_exp(-z) / below;
  }
  return __builtin_copysign(a < 0x1p-30 ? 0x1.20dd750429b6dp+0 * a : y, x);
}

/* The remainder of a division, digit by digit: it is exact. */
TILTH_MATH double tilth_fmod(double x, double y) {
  double a = __builtin_fabs(x), b = __builtin_fabs(y);
  if (!(a < TILTH_INFINITY) || !(b > 0)) return TILTH_NAN;
  if (a < b || b == TILTH_INFINITY) return x;
  uint64_t ma = tilth_bits(a), mb = tilth_bits(b);
  int ea = (int)(ma >> 52), eb = (int)(mb >> 52);
  ma = ea ? (ma & 0xfffffffffffff) | 0x10000000000000 : ma, mb = eb ? (mb & 0xfffffffffffff) | 0x10000000000000 : mb;
  ea += !ea, eb += !eb;
  for (ma %= mb; ea > eb; ea--) ma = ma * 2 % mb;
  for (; ma && ma < 0x10000000000000 && eb > 1; eb--) ma *= 2;
  if (ma >= 0x10000000000000) ma = (ma & 0xfffffffffffff) | (uint64_t)eb << 52;
  return __builtin_copysign(tilth_double(ma), x);
}

#endif

/* Floats. Those that kernels are full of have formulas of their own, with the polynomials of the vectors of
 * processors. */
TILTH_MATH float tilth_expf(float x) {
  float y = x < -104 ? -104 : x > 89 ? 89 : x, t = y * 0x1.715476p+0f + 0x1.8p+23f, n = t - 0x1.8p+23f;
  float r = y - n * 0x1.62e4p-1f - n * 0x1.7f7d1cp-20f, p = r * 0x1.6a23cep-10f + 0x1.123a2p-7f;
  p = p * r + 0x1.5558f2p-5f;
  p = p * r + 0x1.555492p-3f;
  p = p * r + 0x1.fffffcp-2f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  int e = (int)(tilth_bitsf(t) - 0x4b400000), first = e >> 1;
  return x == x ? p * tilth_float((uint32_t)(first + 127) << 23) * tilth_float((uint32_t)(e - first + 127) << 23) : x;
}

TILTH_MATH float tilth_logf(float x) {
  if (!(x > 0)) return x == 0 ? -__builtin_inff() : __builtin_nanf("");
  if (x == __builtin_inff()) return x;
  float tiny = x < 0x1p-126f ? 23 : 0, y = tiny > 0 ? x * 0x1p+23f : x;
  int32_t b = (int32_t)(tilth_bitsf(y) - 0x3f3504f3);
  float n = (float)(b >> 23) - tiny, f = tilth_float((uint32_t)(b & 0x7fffff) + 0x3f3504f3) - 1.0f, s = f * f;
  float p = f * -0x1.38b57ep-4f + 0x1.055b6ep-3f;
  p = p * f - 0x1.0d8544p-3f;
  p = p * f + 0x1.22da1cp-3f;
  p = p * f - 0x1.547244p-3f;
  p = p * f + 0x1.99a008p-3f;
  p = p * f - 0x1.000226p-2f;
  p = p * f + 0x1.555554p-2f;
  return p * f * s + n * 0x1.7f7d1cp-20f - s * 0.5f + f + n * 0x1.62e4p-1f;
}

TILTH_MATH float tilth_tanhf(float x) {
  float c = x < -9.01f ? -9.01f : x > 9.01f ? 9.01f : x, z = c * c, w = z * z;
  float p = (w * -0x1.4d0812p-23f + (z * -0x1.77cf38p-15f - 0x1.e830c4p-11f)) * w;
  p += z * 0x1.4d0d0cp-4f + 0x1.2a0f64p+0f;
  float q = (w * 0x1.216ad8p-20f + (z * 0x1.ddeb64p-12f + 0x1.262472p-5f)) * w + (z * 0x1.4be872p-1f + 0x1.6341fcp+0f);
  float y = (TILTH_RATIO(p, q) + 0x1.49bc0ap-3f) * c;
  return y < -1 ? -1 : y > 1 ? 1 : y;
}

TILTH_MATH float tilth_erff(float x) {
  float c = x < -3.92f ? -3.92f : x > 3.92f ? 3.92f : x, z = c * c, w = z * z;
  float p = (z * -0x1.33263ep-16f - 0x1.57f43p-13f) * w + (z * -0x1.fc446cp-10f + 0x1.c94836p-6f);
  float q = (z * 0x1.1bac8cp-14f + 0x1.0e8d1ep-9f) * w + (z * 0x1.b37664p-6f + 0x1.9eef94p-3f);
  p = p * w + (z * 0x1.8fb13ap-5f + 0x1.6d638ap+0f);
  q = q * w + (z * 0x1.c86cc4p-1f + 0x1.c68966p+0f);
  float y = (TILTH_RATIO(p, q) + 0x1.4c4be6p-2f) * c;
  return y < -1 ? -1 : y > 1 ? 1 : y;
}

/* The other functions compute in double, or use OpenCL's own on devices without doubles. */
#ifdef TILTH_NO_DOUBLES
#define TILTH_BY(name, ...) name(__VA_ARGS__)
#else
#define TILTH_BY(name, ...) ((float)tilth_##name(__VA_ARGS__))
#endif
TILTH_MATH float tilth_powf(float x, float y) { return TILTH_BY(pow, x, y); }
TILTH_MATH float tilth_fmodf(float x, float y) { return TILTH_BY(fmod, x, y); }
TILTH_MATH float tilth_sinf(float x) { return TILTH_BY(sin, x); }
TILTH_MATH float tilth_cosf(float x) { return TILTH_BY(cos, x); }
TILTH_MATH float tilth_tanf(float x) { return TILTH_BY(tan, x); }
TILTH_MATH float tilth_asinf(float x) { return TILTH_BY(asin, x); }
TILTH_MATH float tilth_acosf(float x) { return TILTH_BY(acos, x); }
TILTH_MATH float tilth_atanf(float x) { return TILTH_BY(atan, x); }
TILTH_MATH float tilth_sinhf(float x) { return TILTH_BY(sinh, x); }
TILTH_MATH float tilth_coshf(float x) { return TILTH_BY(cosh, x); }
TILTH_MATH float tilth_asinhf(float x) { return TILTH_BY(asinh, x); }
TILTH_MATH float tilth_acoshf(float x) { return TILTH_BY(acosh, x); }
TILTH_MATH float tilth_atanhf(float x) { return TILTH_BY(atanh, x); }

/* What machines have instructions for. */
#ifndef TILTH_NO_DOUBLES
TILTH_MATH double tilth_sqrt(double x) { return __builtin_sqrt(x); }
TILTH_MATH double tilth_floor(double x) { return __builtin_floor(x); }
TILTH_MATH double tilth_ceil(double x) { return __builtin_ceil(x); }
TILTH_MATH double tilth_rint(double x) { return __builtin_rint(x); }
TILTH_MATH double tilth_fabs(double x) { return __builtin_fabs(x); }
#endif
TILTH_MATH float tilth_sqrtf(float x) { return __builtin_sqrtf(x); }
TILTH_MATH float tilth_floorf(float x) { return __builtin_floorf(x); }
TILTH_MATH float tilth_ceilf(float x) { return __builtin_ceilf(x); }
TILTH_MATH float tilth_rintf(float x) { return __builtin_rintf(x); }
TILTH_MATH float tilth_fabsf(float x) { return __builtin_fabsf(x); }
