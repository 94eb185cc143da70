/* Compares functions with those of the C library in long double: floats over all bits in steps, doubles drawn with
 * all exponents and near the middle, and special values. The text before defines STEP and DRAWS, how many. Prints
 * each function's largest error, in units in the last place. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A wrong NaN, infinity or sign of zero counts as a billion. */
static double off(double got, long double want, int digits, int least) {
  if (want != want) return got != got ? 0 : 1e9;
  if ((long double)got == want) return !signbit(got) == !signbit(want) ? 0 : 1e9;
  int e;
  frexpl(fabsl(want), &e);
  if (e < least) e = least;
  long double unit = ldexpl(1, e - digits), most = digits == 24 ? (long double)FLT_MAX : (long double)DBL_MAX;
  if (isinf(got)) return fabsl(want) > most - unit && !signbit(got) == !signbit(want) ? 0.5 : 1e9;
  if (got != got || isinf(want)) return 1e9;
  return (double)(fabsl((long double)got - want) / unit);
}

static uint64_t seed = 1;
static uint64_t draw(void) { return seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407, seed ^ seed >> 33; }

static double any_double(void) {
  uint64_t bits = draw() << 32 ^ draw();
  double x;
  memcpy(&x, &bits, 8);
  return draw() & 1 ? x : ldexp((double)(int64_t)bits, -63 + (int)(draw() % 12) - 2);
}

static const double special[] = {0,     -0.0,  1,         -1,       2,    -2,   0.5,  -0.5,     3,     -3,   2.5,      1e30,      -1e30,    1e300,
                                 -1e300, 1e-300, INFINITY, -INFINITY, NAN, 1e10, 710,  -745.2,   709.7, 0x1p-1074, 0x1p-1022, 0x1p-149, 0x1p-126, 88.8,
                                 -103.9, 1e22,  0x1.921fb54442d18p+0, 0x1.921fb6p+0, 0x1.6ac5b262ca1ffp+849};
enum { specials = sizeof special / sizeof *special };

static float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}

static void one(const char *name, double (*d)(double), float (*f)(float), long double (*exact)(long double)) {
  double worst = 0, worst_x = 0, worst_f = 0, worst_fx = 0;
  for (int k = 0; k < DRAWS + specials; k++) {
    double x = k < specials ? special[k] : any_double(), e = off(d(x), exact(x), 53, -1021);
    if (e > worst) worst = e, worst_x = x;
  }
  for (uint64_t b = 0; b < UINT64_C(1) << 32; b += STEP) {
    float x = float_of((uint32_t)b);
    double e = off(f(x), exact(x), 24, -125);
    if (e > worst_f) worst_f = e, worst_fx = x;
  }
  for (int k = 0; k < specials; k++) {
    double e = off(f((float)special[k]), exact((float)special[k]), 24, -125);
    if (e > worst_f) worst_f = e, worst_fx = special[k];
  }
  printf("%s %.2f %a\n%sf %.2f %a\n", name, worst, worst_x, name, worst_f, worst_fx);
}

static void two(const char *name, double (*d)(double, double), float (*f)(float, float), long double (*exact)(long double, long double)) {
  double worst = 0, worst_x = 0, worst_f = 0, worst_fx = 0;
  for (int k = 0; k < DRAWS + specials * specials; k++) {
    double x = k < specials * specials ? special[k / specials] : any_double(), y = k < specials * specials ? special[k % specials] : any_double();
    if (k % 4 == 0 && k >= specials * specials) y = rint(y);
    if (k % 4 == 1 && k >= specials * specials) x = fabs(x);
    double e = off(d(x, y), exact(x, y), 53, -1021), ef = off(f((float)x, (float)y), exact((float)x, (float)y), 24, -125);
    if (e > worst) worst = e, worst_x = x;
    if (ef > worst_f) worst_f = ef, worst_fx = x;
  }
  printf("%s %.2f %a\n%sf %.2f %a\n", name, worst, worst_x, name, worst_f, worst_fx);
}

#define ONE(name) one(#name, tilth_##name, tilth_##name##f, name##l);
#define TWO(name) two(#name, tilth_##name, tilth_##name##f, name##l);
/* Powers of small integers are exact. */
static void whole_powers(void) {
  for (int x = 1; x < 100; x++) {
    double power = 1;
    for (int y = 0; power < 0x1p53; y++, power *= x)
      if (tilth_pow(x, y) != power || tilth_pow(-x, y) != (y % 2 ? -power : power) || y > 60) {
        if (x > 1) printf("%d^%d is not %.0f\n", x, y, power);
        break;
      }
  }
}

int main(void) {
  whole_powers();
  ONE(exp) ONE(log) ONE(tanh) ONE(erf) ONE(sin) ONE(cos) ONE(tan) ONE(asin) ONE(acos) ONE(atan) ONE(sinh) ONE(cosh) ONE(asinh) ONE(acosh) ONE(atanh)
  ONE(sqrt) ONE(floor) ONE(ceil) ONE(rint) ONE(fabs)
  TWO(pow) TWO(fmod)
  return 0;
}
