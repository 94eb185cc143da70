// Sweeps vector functions against the C library in double precision. The unit before this defines LANES, VECTOR and, for each
// function, a line SWEEP(name, function of the library) or SWEEP2 in test_functions. Prints each function's largest error in
// units in the last place and where it is.
#include <math.h>
#include <stdio.h>
#include <string.h>

// error is in units in the last place; a wrong NaN, infinity or sign of zero counts as a billion.
static double error(float got, double want) {
  float w = (float)want;
  if (w != w) return got != got ? 0 : 1e9;
  if (got == w) return signbit(got) == signbit(w) ? 0 : 1e9;
  if (got != got || isinf(got) != isinf(w)) return fabs(want) > 0x1.fffffep+127 && fabsf(got) > 0x1.fffff0p+127f ? 1 : 1e9;
  int e;
  frexp(fmax(fabs(want), 0x1p-126), &e);
  return fabs(got - want) / ldexp(1, e - 24);
}

static double logistic(double x) { return 1 + exp(-x); }

static double worst;
static float worst_x, worst_y;

static void note(double e, float x, float y) {
  if (e > worst) worst = e, worst_x = x, worst_y = y;
}

static void report(const char *name) {
  printf("%s %.3f %a %a\n", name, worst, worst_x, worst_y);
  worst = 0;
}

static const float special[] = {0, -0.0f, 1, -1, 2, -2, 0.5f, 3, -3, 2.5f, 1e30f, -1e30f, 0x1p-149f, -0x1p-149f, 0x1p-126f, 0x1.fffffep+127f,
                                INFINITY, -INFINITY, NAN, 1e10f, 0x1.921fb6p+20f, 88.8f, -103.9f, 16777217.0f};
enum { specials = sizeof special / sizeof *special };

#define SWEEP(name, vectorised, exact)                                         \
  static void sweep_##name(void) {                                             \
    for (uint64_t base = 0; base < (UINT64_C(1) << 32) + 997 * LANES; base += STRIDE * LANES) { \
      VECTOR x, y;                                                             \
      for (int k = 0; k < LANES; k++) {                                        \
        uint32_t bits = (uint32_t)(base + (uint64_t)k * STRIDE);               \
        float f;                                                               \
        memcpy(&f, &bits, 4);                                                  \
        x[k] = f;                                                              \
      }                                                                        \
      y = vectorised(x);                                                       \
      for (int k = 0; k < LANES; k++) note(error(y[k], exact(x[k])), x[k], 0); \
    }                                                                          \
    for (int s = 0; s < specials; s++) {                                       \
      VECTOR x;                                                                \
      for (int k = 0; k < LANES; k++) x[k] = special[(s + k) % specials];      \
      VECTOR y = vectorised(x);                                                \
      for (int k = 0; k < LANES; k++) note(error(y[k], exact(x[k])), x[k], 0); \
    }                                                                          \
    report(#name);                                                             \
  }

#define SWEEP2(name, vectorised, exact)                                        \
  static void sweep_##name(void) {                                             \
    uint64_t seed = 1;                                                         \
    for (int n = 0; n < 400000 + specials * specials; n += LANES) {            \
      VECTOR x, y, z;                                                          \
      for (int k = 0; k < LANES; k++) {                                        \
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;     \
        x[k] = expf((float)((int32_t)(seed >> 32) * 0x1p-31 * 8)) * (seed >> 20 & 1 ? 1 : 0x1p-90f); \
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;     \
        y[k] = (float)((int32_t)(seed >> 32) * 0x1p-31 * 40);                  \
        if (n + k < specials * specials) x[k] = special[(n + k) / specials], y[k] = special[(n + k) % specials]; \
      }                                                                        \
      z = vectorised(x, y);                                                    \
      for (int k = 0; k < LANES; k++) note(error(z[k], exact(x[k], y[k])), x[k], y[k]); \
    }                                                                          \
    report(#name);                                                             \
  }
