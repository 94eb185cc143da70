THUNK(warpgroup, a[0], a[1], a[2])
/* 1 plus the product of 64 x depth numbers and depth x n, either with columns first where it is turned so. */
static void multiply(const double *a, int a_turned, const double *b, int b_turned, int depth, int n, double *c) {
  for (int i = 0; i < 64; i++)
    for (int j = 0; j < n; j++) {
      c[i * n + j] = 1;
      for (int k = 0; k < depth; k++) c[i * n + j] += a[a_turned ? k * 64 + i : i * depth + k] * b[b_turned ? k * n + j : j * depth + k];
    }
}
static double as_bf16(uint32_t bits) { return bfloat((tilth_bfloat16)bits); }
static double as_s8(uint32_t bits) { return (int8_t)bits; }
static double as_u8(uint32_t bits) { return bits; }
static double as_half(uint32_t bits) { return half_of((uint16_t)bits); }
/* Runs a product in 16 or 8 bits on random numbers, and compares. */
#define CHECK(name, type, random, as_a, as_b, depth, n, a_turned, b_turned, sum, tolerance)         \
  do {                                                                                              \
    type *a = room(64 * depth * sizeof *a), *b = room(depth * n * sizeof *b);                       \
    double *x = room(64 * depth * 8), *y = room(depth * n * 8), *want = room(64 * n * 8);           \
    for (int k = 0; k < 64 * depth; k++) x[k] = as_a(a[k] = (type)random());                        \
    for (int k = 0; k < depth * n; k++) y[k] = as_b(b[k] = (type)random());                         \
    multiply(x, a_turned, y, b_turned, depth, n, want);                                             \
    sum *c = room(64 * n * sizeof *c);                                                              \
    float *got = room(64 * n * sizeof *got);                                                        \
    LAUNCH(name, 128, 1, argc, (OUT(c, 64 * n)), a, b, c);                                          \
    for (int k = 0; k < 64 * n; k++) got[k] = (float)c[k];                                          \
    wrong |= differs_from(#name, got, want, 64 * n, tolerance);                                     \
  } while (0)
static uint16_t random_bf16(void) { return (uint16_t)(draw() & 0xbfff); }
static double as_float(float x) { return x; }
static float random_float(void) { return (float)(int32_t)draw() * 0x1p-31f; }
THUNK(wide_bf16, a[0], a[1], a[2])
THUNK(wide_f16, a[0], a[1], a[2])
THUNK(wide_turned, a[0], a[1], a[2])
THUNK(wide_narrow, a[0], a[1], a[2])
THUNK(wide_tf32, a[0], a[1], a[2])
THUNK(wide_s8, a[0], a[1], a[2])
THUNK(wide_u8, a[0], a[1], a[2])
THUNK(wide_s8_u8, a[0], a[1], a[2])
THUNK(wide_u8_s8, a[0], a[1], a[2])
int main(int argc, char **argv) {
  enum { m = 128, n = 256, depth = 256 };
  int wrong = 0;
  tilth_bfloat16 *a = bfloats(m * depth), *b = bfloats(n * depth);
  float *c = room(m * n * sizeof *c);
  double *want = room(m * n * sizeof *want);
  for (int i = 0; i < m; i++)
    for (int k = 0; k < depth; k++)
      for (int j = 0; j < n; j++) want[i * n + j] += (double)bfloat(a[i * depth + k]) * bfloat(b[k * n + j]);
  LAUNCH(warpgroup, 128, 4, argc, (OUT(c, m * n)), a, b, c);
  wrong |= differs_from("warpgroup", c, want, m * n, 1e-5);
  CHECK(wide_bf16, uint16_t, random_bf16, as_bf16, as_bf16, 32, 16, 0, 0, float, 1e-5);
  CHECK(wide_f16, uint16_t, random_half, as_half, as_half, 32, 64, 1, 0, float, 1e-5);
  CHECK(wide_turned, uint16_t, random_half, as_half, as_half, 32, 256, 1, 1, float, 1e-5);
  CHECK(wide_narrow, uint16_t, random_bf16, as_bf16, as_bf16, 32, 32, 0, 1, float, 1e-5);
  CHECK(wide_tf32, float, random_float, as_float, as_float, 16, 32, 0, 0, float, 0x1p-9); /* all but 11 bits are left out */
  CHECK(wide_s8, uint8_t, draw, as_s8, as_s8, 64, 32, 0, 0, int32_t, 0);
  CHECK(wide_u8, uint8_t, draw, as_u8, as_u8, 64, 16, 0, 0, int32_t, 0);
  CHECK(wide_s8_u8, uint8_t, draw, as_s8, as_u8, 64, 16, 0, 0, int32_t, 0);
  CHECK(wide_u8_s8, uint8_t, draw, as_u8, as_s8, 64, 16, 0, 0, int32_t, 0);
  return wrong;
}
