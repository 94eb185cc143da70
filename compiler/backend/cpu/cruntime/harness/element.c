#include "element.h"

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
  __builtin_memcpy(&bits, &v, 4); /* boards, which compile this, too, have no string.h */
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

/* For |v| <= 1; of a uniform value the bits below a half's are dropped, which rounds toward zero. */
static uint16_t to_float16(float v) {
  uint32_t bits;
  __builtin_memcpy(&bits, &v, 4);
  int exponent = (int)(bits >> 23 & 255) - 112;
  uint16_t sign = bits >> 16 & 0x8000;
  return exponent <= 0 ? sign : sign | exponent << 10 | (bits >> 13 & 1023);
}

#define FILL(type, value)                                 \
  do {                                                    \
    type *p = data;                                       \
    for (int64_t i = begin; i < end; i++) {               \
      uint32_t x = mix((uint32_t)i * 0x9e3779b9u + key);  \
      p[i] = (value);                                     \
    }                                                     \
  } while (0)

void element_fill(void *data, int64_t n, int32_t dtype, uint64_t seed) { element_fill_some(data, 0, n, dtype, seed); }

void element_fill_some(void *data, int64_t begin, int64_t end, int32_t dtype, uint64_t seed) {
  uint32_t key = mix((uint32_t)seed ^ mix((uint32_t)(seed >> 32) + 1));
  switch (dtype) {
  case TILTH_FLOAT32: FILL(float, uniform(x)); break;
#ifndef TILTH_NO_DOUBLES /* on boards without them, which get such data sent */
  case TILTH_FLOAT64: FILL(double, uniform(x)); break;
#endif
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
