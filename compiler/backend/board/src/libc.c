/* What compiled models call of a C library, for programs that have none. All definitions are weak, so that a program
 * may bring its own. Errors of functions of float are at most 2 units in the last place. */
#include <stddef.h>
#include <stdint.h>

#ifdef __clang__
#define WEAK __attribute__((weak))
#else /* gcc would make calls of these functions of their own loops */
#define WEAK __attribute__((weak, optimize("no-tree-loop-distribute-patterns")))
#endif

typedef uint32_t __attribute__((may_alias)) word;

static int whole_words(const void *a, const void *b, size_t n) { return (((uintptr_t)a | (uintptr_t)b | n) & 3) == 0; }

WEAK void *memcpy(void *restrict to, const void *restrict from, size_t n) {
  if (whole_words(to, from, n)) {
    for (size_t k = 0; k < n / 4; k++) ((word *)to)[k] = ((const word *)from)[k];
    return to;
  }
  for (size_t k = 0; k < n; k++) ((uint8_t *)to)[k] = ((const uint8_t *)from)[k];
  return to;
}

WEAK void *memmove(void *to, const void *from, size_t n) {
  if ((uintptr_t)to - (uintptr_t)from >= n) {
    for (size_t k = 0; k < n; k++) ((uint8_t *)to)[k] = ((const uint8_t *)from)[k];
    return to;
  }
  for (size_t k = n; k > 0; k--) ((uint8_t *)to)[k - 1] = ((const uint8_t *)from)[k - 1];
  return to;
}

WEAK void *memset(void *to, int value, size_t n) {
  if (whole_words(to, 0, n)) {
    const word all = (uint8_t)value * 0x01010101u;
    for (size_t k = 0; k < n / 4; k++) ((word *)to)[k] = all;
    return to;
  }
  for (size_t k = 0; k < n; k++) ((uint8_t *)to)[k] = (uint8_t)value;
  return to;
}

WEAK int memcmp(const void *a, const void *b, size_t n) {
  for (size_t k = 0; k < n; k++) {
    const int difference = ((const uint8_t *)a)[k] - ((const uint8_t *)b)[k];
    if (difference) return difference;
  }
  return 0;
}

static uint32_t bits(float x) {
  const union { float f; uint32_t u; } v = {x};
  return v.u;
}

static float number(uint32_t u) {
  const union { uint32_t u; float f; } v = {.u = u};
  return v.f;
}

static float magnitude(float x) { return number(bits(x) & 0x7fffffff); }

static float with_sign(float x, float of) { return number((bits(x) & 0x7fffffff) | (bits(of) & 0x80000000)); }

/* From 2^23 on all floats are whole. NaN is not less than it. */
static int is_whole(float x) { return !(magnitude(x) < 0x1p23f); }

WEAK float floorf(float x) {
  if (is_whole(x)) return x;
  const float t = (float)(int32_t)x;
  return with_sign(t > x ? t - 1 : t, x);
}

WEAK float ceilf(float x) {
  if (is_whole(x)) return x;
  const float t = (float)(int32_t)x;
  return with_sign(t < x ? t + 1 : t, x);
}

/* To the nearest, of two to the even one. */
WEAK float rintf(float x) {
  if (is_whole(x)) return x;
  int32_t n = (int32_t)x;
  const float over = magnitude(x - (float)n);
  if (over > 0.5f || (over == 0.5f && (n & 1))) n += x < 0 ? -1 : 1;
  return with_sign((float)n, x);
}

/* x = n ln2 + r, e^r by a polynomial, and 2^n in two steps, which reach infinity and denormal results. */
WEAK float expf(float x) {
  if (x != x) return x;
  const float y = x > 89 ? 89 : x < -104 ? -104 : x;
  const float f = y * 0x1.715476p+0f;
  const int32_t n = (int32_t)(f < 0 ? f - 0.5f : f + 0.5f), half = n >> 1;
  const float r = y - (float)n * 0x1.62e4p-1f - (float)n * 0x1.7f7d1cp-20f;
  float p = r * 0x1.6a23cep-10f + 0x1.123a2p-7f;
  p = p * r + 0x1.5558f2p-5f;
  p = p * r + 0x1.555492p-3f;
  p = p * r + 0x1.fffffcp-2f;
  p = p * r + 1.0f;
  return (p * r + 1.0f) * number((uint32_t)(half + 127) << 23) * number((uint32_t)(n - half + 127) << 23);
}

/* x = m 2^n with m between the roots of 1/2 and 2, and log(m) = f - f*f/2 + f*f*f P(f) with f = m - 1. */
WEAK float logf(float x) {
  if (!(x > 0)) return x == 0 ? -__builtin_inff() : __builtin_nanf("");
  if (!(x < __builtin_inff())) return x;
  float n = 0;
  if (x < 0x1p-126f) x *= 0x1p+23f, n = -23;
  const int32_t b = (int32_t)(bits(x) - 0x3f3504f3);
  n += (float)(b >> 23);
  const float f = number((uint32_t)(b & 0x7fffff) + 0x3f3504f3) - 1.0f, s = f * f;
  float p = f * -0x1.38b57ep-4f + 0x1.055b6ep-3f;
  p = p * f - 0x1.0d8544p-3f;
  p = p * f + 0x1.22da1cp-3f;
  p = p * f - 0x1.547244p-3f;
  p = p * f + 0x1.99a008p-3f;
  p = p * f - 0x1.000226p-2f;
  p = p * f + 0x1.555554p-2f;
  return p * f * s + n * 0x1.7f7d1cp-20f - s * 0.5f + f + n * 0x1.62e4p-1f;
}

/* x (k + P/Q) with polynomials of x*x, up to where the result rounds to one. */
WEAK float tanhf(float x) {
  if (x != x) return x;
  const float c = x > 9.01f ? 9.01f : x < -9.01f ? -9.01f : x, z = c * c, w = z * z;
  const float p = (w * -0x1.4d0812p-23f + (z * -0x1.77cf38p-15f - 0x1.e830c4p-11f)) * w + (z * 0x1.4d0d0cp-4f + 0x1.2a0f64p+0f);
  const float q = (w * 0x1.216ad8p-20f + (z * 0x1.ddeb64p-12f + 0x1.262472p-5f)) * w + (z * 0x1.4be872p-1f + 0x1.6341fcp+0f);
  const float y = (p / q + 0x1.49bc0ap-3f) * c;
  return y > 1 ? 1 : y < -1 ? -1 : y;
}

/* The same form. */
WEAK float erff(float x) {
  if (x != x) return x;
  const float c = x > 3.92f ? 3.92f : x < -3.92f ? -3.92f : x, z = c * c, w = z * z;
  float p = (z * -0x1.33263ep-16f - 0x1.57f43p-13f) * w + (z * -0x1.fc446cp-10f + 0x1.c94836p-6f);
  float q = (z * 0x1.1bac8cp-14f + 0x1.0e8d1ep-9f) * w + (z * 0x1.b37664p-6f + 0x1.9eef94p-3f);
  p = p * w + (z * 0x1.8fb13ap-5f + 0x1.6d638ap+0f);
  q = q * w + (z * 0x1.c86cc4p-1f + 0x1.c68966p+0f);
  const float y = (p / q + 0x1.4c4be6p-2f) * c;
  return y > 1 ? 1 : y < -1 ? -1 : y;
}

/* |x| = q pi/2 + r with |r| <= pi/4: the mantissa is multiplied by those bits of 2/pi that matter (Payne and Hanek,
 * 1983), in integers, since many of these processors have no double. */
static float reduced(float x, int32_t *quadrant) {
  static const uint32_t two_over_pi[] = {0, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
  const uint32_t u = bits(x) & 0x7fffffff, m = (u & 0x7fffff) | 0x800000;
  *quadrant = 0;
  if (u <= 0x3f490fdb) return number(u); /* pi/4 */
  /* |x| = m 2^e. The window of 96 bits begins where a bit times m 2^e is 4 quadrants: what is above are whole turns. */
  const int32_t first = (int32_t)(u >> 23) - 150 - 2 + 32, at = first >> 5, by = first & 31;
  uint32_t w[3];
  for (int32_t k = 0; k < 3; k++)
    w[k] = by ? two_over_pi[at + k] << by | two_over_pi[at + k + 1] >> (32 - by) : two_over_pi[at + k];
  /* The angle in units of 2^-62 quadrants. */
  const uint64_t angle = ((uint64_t)(m * w[0]) << 32) + (uint64_t)m * w[1] + ((uint64_t)m * w[2] >> 32);
  const uint32_t q = (uint32_t)((angle + (1ull << 61)) >> 62);
  const uint64_t rest = angle - ((uint64_t)q << 62), size = rest >> 63 ? -rest : rest;
  *quadrant = (int32_t)(q & 3);
  if (size == 0) return 0;
  const uint32_t upper = (uint32_t)(size >> 32);
  const int32_t zeros = upper ? __builtin_clz(upper) : 32 + __builtin_clz((uint32_t)size);
  const uint32_t by_half_pi = (uint32_t)((uint64_t)(uint32_t)(size << zeros >> 32) * 0xc90fdaa2u >> 32);
  const float r = (float)by_half_pi * number((uint32_t)(127 - 29 - zeros) << 23);
  return rest >> 63 ? -r : r;
}

static float sine(float r) {
  const float z = r * r;
  float s = z * -0x1.994062p-13f + 0x1.11073p-7f;
  s = s * z - 0x1.555546p-3f;
  return s * z * r + r;
}

static float cosine(float r) {
  const float z = r * r;
  float c = z * 0x1.99e86ap-16f - 0x1.6c0c28p-10f;
  c = c * z + 0x1.55554ap-5f;
  return c * z * z - z * 0.5f + 1.0f;
}

WEAK float sinf(float x) {
  if (!(magnitude(x) < __builtin_inff())) return x - x;
  int32_t q;
  const float r = reduced(x, &q), y = q & 1 ? cosine(r) : sine(r);
  return number(bits(y) ^ (uint32_t)(q & 2) << 30 ^ (bits(x) & 0x80000000));
}

WEAK float cosf(float x) {
  if (!(magnitude(x) < __builtin_inff())) return x - x;
  int32_t q;
  const float r = reduced(x, &q), y = q & 1 ? sine(r) : cosine(r);
  return (q + 1) & 2 ? -y : y;
}

/* Casts between floats and integers of 64 bits, which these processors lack and compilers call. */
#ifdef __ARM_EABI__
#define CAST(name, eabi) WEAK __attribute__((pcs("aapcs"))) eabi
#else
#define CAST(name, eabi) WEAK name
#endif

static uint64_t truncated(float x) {
  const uint32_t u = bits(x) & 0x7fffffff, m = (u & 0x7fffff) | 0x800000;
  const int32_t e = (int32_t)(u >> 23) - 150;
  return e < -24 ? 0 : e < 0 ? m >> -e : e < 41 ? (uint64_t)m << e : UINT64_MAX;
}

static float nearest(uint64_t n) {
  if (n < 1u << 24) return (float)(uint32_t)n;
  const uint32_t upper = (uint32_t)(n >> 32);
  const int32_t zeros = upper ? __builtin_clz(upper) : 32 + __builtin_clz((uint32_t)n);
  n <<= zeros;
  const uint64_t rest = n & 0xffffffffff, half = 1ull << 39;
  const uint32_t m = (uint32_t)(n >> 40), up = rest > half || (rest == half && (m & 1));
  return (float)(m + up) * number((uint32_t)(127 + 40 - zeros) << 23);
}

CAST(int64_t __fixsfdi, int64_t __aeabi_f2lz)(float x) {
  const uint64_t n = truncated(x);
  return x < 0 ? (n >> 63 ? INT64_MIN : -(int64_t)n) : (n >> 63 ? INT64_MAX : (int64_t)n);
}

CAST(uint64_t __fixunssfdi, uint64_t __aeabi_f2ulz)(float x) { return x < 0 ? 0 : truncated(x); }

CAST(float __floatdisf, float __aeabi_l2f)(int64_t n) { return n < 0 ? -nearest(-(uint64_t)n) : nearest((uint64_t)n); }

CAST(float __floatundisf, float __aeabi_ul2f)(uint64_t n) { return nearest(n); }
