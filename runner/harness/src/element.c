#include "element.h"

#include <math.h>
#include <string.h>

#include "buffer.h"

int64_t element_bytes(int32_t dtype) {
  static const int8_t bytes[] = {0, 4, 8, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8, 1};
  return dtype > 0 && dtype < (int32_t)sizeof bytes ? bytes[dtype] : 0;
}

/* The finaliser of a 32-bit hash (Wellons, "Prospecting for hash functions", lowbias32) over the index: vectorises. */
static inline uint32_t mix(uint32_t x) {
  x ^= x >> 16, x *= 0x7feb352du;
  x ^= x >> 15, x *= 0x846ca68bu;
  return x ^ x >> 16;
}

/* Uniform in [-1, 1), exact in 24 bits. */
static inline float uniform(uint32_t x) { return (float)(int32_t)(x >> 8) * 0x1p-23f - 1; }

static uint16_t to_bfloat16(float v) {
  uint32_t bits;
  memcpy(&bits, &v, 4);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

static float from_bfloat16(uint16_t h) {
  uint32_t bits = (uint32_t)h << 16;
  float v;
  memcpy(&v, &bits, 4);
  return v;
}

/* For |v| <= 1; of a uniform value the bits below a half's are dropped, which rounds toward zero. */
static uint16_t to_float16(float v) {
  uint32_t bits;
  memcpy(&bits, &v, 4);
  int exponent = (int)(bits >> 23 & 255) - 112;
  uint16_t sign = bits >> 16 & 0x8000;
  return exponent <= 0 ? sign : sign | exponent << 10 | (bits >> 13 & 1023);
}

static double from_float16(uint16_t h) {
  int exponent = h >> 10 & 31, fraction = h & 1023;
  double v = exponent == 31 ? (fraction ? NAN : INFINITY) : exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
  return h & 0x8000 ? -v : v;
}

#define FILL(type, value)                                 \
  do {                                                    \
    type *p = data;                                       \
    for (int64_t i = 0; i < n; i++) {                     \
      uint32_t x = mix((uint32_t)i * 0x9e3779b9u + key);  \
      p[i] = (value);                                     \
    }                                                     \
  } while (0)

void element_fill(void *data, int64_t n, int32_t dtype, uint64_t seed) {
  uint32_t key = mix((uint32_t)seed ^ mix((uint32_t)(seed >> 32) + 1));
  switch (dtype) {
  case TILTH_FLOAT32: FILL(float, uniform(x)); break;
  case TILTH_FLOAT64: FILL(double, uniform(x)); break;
  case TILTH_FLOAT16: FILL(uint16_t, to_float16(uniform(x))); break;
  case TILTH_BFLOAT16: FILL(uint16_t, to_bfloat16(uniform(x))); break;
  case TILTH_INT8: FILL(int8_t, (int8_t)(x >> 29) - 4); break;
  case TILTH_INT16: FILL(int16_t, (int16_t)(x >> 29) - 4); break;
  case TILTH_UINT8: FILL(uint8_t, x >> 29); break;
  case TILTH_UINT16: FILL(uint16_t, x >> 29); break;
  case TILTH_BOOL: FILL(uint8_t, x >> 31); break;
  case TILTH_INT32: case TILTH_UINT32: FILL(uint32_t, x >> 31); break;
  default: FILL(uint64_t, x >> 31);
  }
}

static double value(const void *data, int64_t i, int32_t dtype) {
  switch (dtype) {
  case TILTH_FLOAT32: return ((const float *)data)[i];
  case TILTH_FLOAT64: return ((const double *)data)[i];
  case TILTH_FLOAT16: return from_float16(((const uint16_t *)data)[i]);
  case TILTH_BFLOAT16: return from_bfloat16(((const uint16_t *)data)[i]);
  case TILTH_INT8: return ((const int8_t *)data)[i];
  case TILTH_INT16: return ((const int16_t *)data)[i];
  case TILTH_INT32: return ((const int32_t *)data)[i];
  case TILTH_INT64: return ((const int64_t *)data)[i];
  case TILTH_UINT16: return ((const uint16_t *)data)[i];
  case TILTH_UINT32: return ((const uint32_t *)data)[i];
  case TILTH_UINT64: return ((const uint64_t *)data)[i];
  default: return ((const uint8_t *)data)[i];
  }
}

static struct difference at(int64_t i, double relative, const void *got, const void *want, int32_t dtype) {
  return (struct difference){relative, i, value(got, i, dtype), value(want, i, dtype)};
}

static struct difference compare_exact(const void *got, const void *want, int64_t n, int32_t dtype) {
  int64_t size = element_bytes(dtype);
  if (memcmp(got, want, n * size) == 0) return (struct difference){0};
  int64_t i = 0;
  while (memcmp((const char *)got + i * size, (const char *)want + i * size, size) == 0) i++;
  return at(i, INFINITY, got, want, dtype);
}

static uint32_t bits_of(float v) {
  uint32_t bits;
  memcpy(&bits, &v, 4);
  return bits;
}

static uint32_t magnitude(float v) { return bits_of(v) & 0x7fffffff; }

static float from_magnitude(uint32_t bits) {
  float v;
  memcpy(&v, &bits, 4);
  return v;
}

/* The common type gets a loop that vectorises: magnitudes order as their bits do, NaN and infinity above all others. Gaps
 * between elements hold poison on both sides and count nothing. 0 when something is not finite or the reference is all
 * zeros; then *relative is not set. */
static int scan_float32(const float *got, const float *want, int64_t n, double *relative) {
  const uint32_t poison = POISON * 0x01010101u;
  uint32_t worst = 0, largest = 0;
  for (int64_t i = 0; i < n; i++) {
    uint32_t counts = bits_of(got[i]) == poison && bits_of(want[i]) == poison ? 0 : ~0u;
    uint32_t d = magnitude(got[i] - want[i]) & counts, a = magnitude(want[i]) & counts;
    worst = d > worst ? d : worst;
    largest = a > largest ? a : largest;
  }
  if (worst >= 0x7f800000 || largest >= 0x7f800000 || largest == 0) return 0;
  *relative = (double)from_magnitude(worst) / from_magnitude(largest);
  return 1;
}

static struct difference compare_slowly(const void *got, const void *want, int64_t n, int32_t dtype) {
  double largest = 0, worst = -1;
  int64_t where = 0;
  for (int64_t i = 0; i < n; i++) {
    double a = value(got, i, dtype), b = value(want, i, dtype);
    if (isfinite(b) && fabs(b) > largest) largest = fabs(b);
    if (a == b || (isnan(a) && isnan(b))) continue;
    if (!isfinite(a) || !isfinite(b)) return at(i, INFINITY, got, want, dtype);
    if (fabs(a - b) > worst) worst = fabs(a - b), where = i;
  }
  if (worst < 0) return (struct difference){0};
  return at(where, largest > 0 ? worst / largest : INFINITY, got, want, dtype);
}

struct difference element_compare(const void *got, const void *want, int64_t n, int32_t dtype, double tolerance) {
  if (dtype > TILTH_BFLOAT16) return compare_exact(got, want, n, dtype);
  double relative;
  if (dtype == TILTH_FLOAT32 && scan_float32(got, want, n, &relative) && relative <= tolerance) return (struct difference){.relative = relative};
  return compare_slowly(got, want, n, dtype);
}
