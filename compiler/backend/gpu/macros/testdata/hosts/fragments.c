THUNK(product_f16, a[0], a[1], a[2])
THUNK(product_tf32, a[0], a[1], a[2])
THUNK(product_s8, a[0], a[1], a[2])
THUNK(product_u8, a[0], a[1], a[2])
THUNK(product_s8_u8, a[0], a[1], a[2])
THUNK(product_u8_s8, a[0], a[1], a[2])
THUNK(product_turned, a[0], a[1], a[2])
/* 1 plus the product of 16 x depth numbers, rows first, and depth x 8, columns first. */
static void multiply(const double *a, const double *b, int depth, double *c) {
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 8; j++) {
      c[i * 8 + j] = 1;
      for (int k = 0; k < depth; k++) c[i * 8 + j] += a[i * depth + k] * b[j * depth + k];
    }
}
int main(int argc, char **argv) {
  double a[16 * 32], b[8 * 32], want[16 * 8];
  float *c = room(16 * 8 * sizeof *c);
  int32_t *whole = room(16 * 8 * sizeof *whole);
  int wrong = 0;

  uint16_t *ha = room(16 * 16 * 2), *hb = room(8 * 16 * 2);
  for (int k = 0; k < 16 * 16; k++) a[k] = half_of(ha[k] = random_half());
  for (int k = 0; k < 8 * 16; k++) b[k] = half_of(hb[k] = random_half());
  multiply(a, b, 16, want);
  LAUNCH(product_f16, 32, 1, argc, (OUT(c, 16 * 8)), ha, hb, c);
  wrong |= differs_from("product_f16", c, want, 16 * 8, 1e-5);

  float *fa = numbers(16 * 8), *fb = numbers(8 * 8);
  for (int k = 0; k < 16 * 8; k++) a[k] = fa[k];
  for (int k = 0; k < 8 * 8; k++) b[k] = fb[k];
  multiply(a, b, 8, want);
  LAUNCH(product_tf32, 32, 1, argc, (OUT(c, 16 * 8)), fa, fb, c);
  wrong |= differs_from("product_tf32", c, want, 16 * 8, 0x1p-10); /* each number is rounded to 11 bits */

  uint8_t *ba = bytes_of(16 * 32), *bb = bytes_of(8 * 32);
  for (int k = 0; k < 16 * 32; k++) a[k] = (int8_t)ba[k];
  for (int k = 0; k < 8 * 32; k++) b[k] = (int8_t)bb[k];
  multiply(a, b, 32, want);
  LAUNCH(product_s8, 32, 1, argc, (OUT(whole, 16 * 8)), ba, bb, whole);
  for (int k = 0; k < 16 * 8; k++) c[k] = (float)whole[k];
  wrong |= differs_from("product_s8", c, want, 16 * 8, 0);
  for (int k = 0; k < 16 * 32; k++) a[k] = ba[k];
  for (int k = 0; k < 8 * 32; k++) b[k] = bb[k];
  multiply(a, b, 32, want);
  LAUNCH(product_u8, 32, 1, argc, (OUT(whole, 16 * 8)), ba, bb, whole);
  for (int k = 0; k < 16 * 8; k++) c[k] = (float)whole[k];
  wrong |= differs_from("product_u8", c, want, 16 * 8, 0);
  for (int k = 0; k < 8 * 32; k++) b[k] = (int8_t)bb[k];
  multiply(a, b, 32, want);
  LAUNCH(product_u8_s8, 32, 1, argc, (OUT(whole, 16 * 8)), ba, bb, whole);
  for (int k = 0; k < 16 * 8; k++) c[k] = (float)whole[k];
  wrong |= differs_from("product_u8_s8", c, want, 16 * 8, 0);
  for (int k = 0; k < 16 * 32; k++) a[k] = (int8_t)ba[k];
  for (int k = 0; k < 8 * 32; k++) b[k] = bb[k];
  multiply(a, b, 32, want);
  LAUNCH(product_s8_u8, 32, 1, argc, (OUT(whole, 16 * 8)), ba, bb, whole);
  for (int k = 0; k < 16 * 8; k++) c[k] = (float)whole[k];
  wrong |= differs_from("product_s8_u8", c, want, 16 * 8, 0);

  tilth_bfloat16 *ta = bfloats(16 * 16), *tb = bfloats(16 * 8);
  for (int k = 0; k < 16 * 16; k++) a[k] = bfloat(ta[k]);
  for (int k = 0; k < 16; k++)
    for (int j = 0; j < 8; j++) b[j * 16 + k] = bfloat(tb[k * 8 + j]);
  multiply(a, b, 16, want);
  LAUNCH(product_turned, 32, 1, argc, (OUT(c, 16 * 8)), ta, tb, c);
  return wrong | differs_from("product_turned", c, want, 16 * 8, 1e-5);
}
