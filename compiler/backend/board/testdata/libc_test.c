/* Compares the functions of libc.c with those of this machine's library, in double, over floats of all sizes. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define memcpy own_memcpy
#define memmove own_memmove
#define memset own_memset
#define memcmp own_memcmp
#define floorf own_floorf
#define ceilf own_ceilf
#define rintf own_rintf
#define expf own_expf
#define logf own_logf
#define tanhf own_tanhf
#define erff own_erff
#define sinf own_sinf
#define cosf own_cosf
#define __fixsfdi own_fixsfdi
#define __fixunssfdi own_fixunssfdi
#define __floatdisf own_floatdisf
#define __floatundisf own_floatundisf
#include "libc.c"
#undef memcpy
#undef memmove
#undef memset
#undef memcmp

static void fail(const char *what, double x, double got, double want) {
  printf("%s(%a) is %a, want %a\n", what, x, got, want);
  exit(1);
}

static void check(const char *name, float (*own)(float), double (*exact)(double), double units) {
  for (uint64_t k = 0; k < 1ull << 32; k += 1009) {
    const float x = number((uint32_t)k), got = own(x);
    const double want = exact(x);
    const float rounded = (float)want;
    if (isnan(rounded) != isnan(got)) fail(name, x, got, want);
    if (isnan(rounded) || rounded == got) {
      if (!isnan(rounded) && signbit(rounded) != signbit(got)) fail(name, x, got, want);
      continue;
    }
    if (isinf(rounded) || isinf(got)) fail(name, x, got, want);
    const double unit = fmax(ldexp(1, ilogb(want) - 23), 0x1p-149);
    if (!(fabs(got - want) <= units * unit)) fail(name, x, got, want);
  }
}

static void check_memory(void) {
  for (size_t from = 0; from < 5; from++)
    for (size_t to = 0; to < 5; to++)
      for (size_t n = 0; n < 40; n++) {
        unsigned char a[64] __attribute__((aligned(8))), b[64] __attribute__((aligned(8))), c[64];
        for (int k = 0; k < 64; k++) a[k] = (unsigned char)(k * 7), b[k] = c[k] = (unsigned char)(100 + k);
        own_memcpy(b + to, a + from, n), memcpy(c + to, a + from, n);
        if (memcmp(b, c, 64)) fail("memcpy", (double)n, (double)from, (double)to);
        memcpy(c, a, 64), own_memmove(a + to, a + from, n), memmove(c + to, c + from, n);
        if (memcmp(a, c, 64)) fail("memmove", (double)n, (double)from, (double)to);
        own_memset(a + to, (int)n + 250, n), memset(c + to, (int)n + 250, n);
        if (memcmp(a, c, 64)) fail("memset", (double)n, (double)from, (double)to);
        if ((own_memcmp(a + from, b + to, n) > 0) - (own_memcmp(a + from, b + to, n) < 0) != (memcmp(a + from, b + to, n) > 0) - (memcmp(a + from, b + to, n) < 0))
          fail("memcmp", (double)n, (double)from, (double)to);
      }
}

static void check_casts(void) {
  for (uint64_t k = 0; k < 1ull << 32; k += 1009) {
    const float x = number((uint32_t)k);
    if (fabsf(x) < 0x1p63f && own_fixsfdi(x) != (int64_t)x) fail("fixsfdi", x, (double)own_fixsfdi(x), x);
    if (x >= 0 && x < 0x1p64f && own_fixunssfdi(x) != (uint64_t)x) fail("fixunssfdi", x, (double)own_fixunssfdi(x), x);
    const uint64_t n = k * 0x9e3779b97f4a7c15u >> (k % 64);
    if (own_floatundisf(n) != (float)n) fail("floatundisf", (double)n, own_floatundisf(n), (float)n);
    if (own_floatdisf((int64_t)n) != (float)(int64_t)n) fail("floatdisf", (double)n, own_floatdisf((int64_t)n), (float)(int64_t)n);
  }
}

int main(void) {
  check_memory();
  check_casts();
  check("floor", own_floorf, floor, 0);
  check("ceil", own_ceilf, ceil, 0);
  check("rint", own_rintf, rint, 0);
  check("exp", own_expf, exp, 2);
  check("log", own_logf, log, 2);
  check("tanh", own_tanhf, tanh, 4);
  check("erf", own_erff, erf, 4);
  check("sin", own_sinf, sin, 2);
  check("cos", own_cosf, cos, 2);
  return 0;
}
