/* Conversions of float16 that compilers call where a processor has no instructions for them, and that the support libraries of gcc before 13
 * lack on RISC-V. Results are rounded to the nearest, ties to even. */
#include <stdint.h>

#define SUPPORT __attribute__((visibility("hidden")))

typedef union {
  _Float16 value;
  uint16_t bits;
} half;

SUPPORT float __extendhfsf2(_Float16 x) {
  half h = {x};
  union {
    uint32_t bits;
    float value;
  } f;
  uint32_t sign = (h.bits & 0x8000u) << 16, exponent = h.bits >> 10 & 31, mantissa = h.bits & 0x3ffu;
  if (exponent == 0) {
    f.value = (float)mantissa * 0x1p-24f;
    f.bits |= sign;
  } else if (exponent == 31) {
    f.bits = sign | 0x7f800000u | mantissa << 13 | (mantissa ? 0x400000u : 0);
  } else {
    f.bits = sign | (exponent + 112) << 23 | mantissa << 13;
  }
  return f.value;
}

SUPPORT _Float16 __truncdfhf2(double x) {
  union {
    double value;
    uint64_t bits;
  } d = {x};
  half h = {.bits = (uint16_t)(d.bits >> 48 & 0x8000u)};
  int exponent = (int)(d.bits >> 52 & 0x7ff) - 1023 + 15;
  uint64_t mantissa = d.bits & (UINT64_C(1) << 52) - 1;
  if (exponent == 0x7ff - 1023 + 15 && mantissa) {
    h.bits |= (uint16_t)(0x7e00u | mantissa >> 42);
    return h.value;
  }
  if (exponent >= 31) {
    h.bits |= 0x7c00u;
    return h.value;
  }
  if (exponent < -10) return h.value;
  int shift = 42;
  uint32_t rounded = (uint32_t)exponent << 10;
  if (exponent <= 0) {
    mantissa |= UINT64_C(1) << 52;
    shift += 1 - exponent;
    rounded = 0;
  }
  uint64_t rest = mantissa & (UINT64_C(1) << shift) - 1, tie = UINT64_C(1) << (shift - 1);
  rounded += (uint32_t)(mantissa >> shift);
  rounded += rest > tie || (rest == tie && (rounded & 1));
  h.bits |= (uint16_t)rounded;
  return h.value;
}

SUPPORT _Float16 __truncsfhf2(float x) { return __truncdfhf2((double)x); }
