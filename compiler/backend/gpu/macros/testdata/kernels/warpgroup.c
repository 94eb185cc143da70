/* A product of m x k and k x n numbers in bfloat16, with m = 128, n = 256, k = 256: tiles of 64 x 128 by one warpgroup,
 * from three stages of asynchronous copies. Products of a step go on while the next one is waited for. */
#define FETCH(s)                                                                                             \
  do {                                                                                                       \
    UNROLL                                                                                                   \
    for (int h = 0; h < 4; h++) {                                                                            \
      int r = TID / 8 + h * 16, q = TID % 8 * 8;                                                             \
      COPY_ASYNC(16, sa, ((s) % 3 * 64 + r) * 64 + q, a, (row + r) * 256 + (s) * 64 + q, 1);                 \
    }                                                                                                        \
    UNROLL                                                                                                   \
    for (int h = 0; h < 8; h++) {                                                                            \
      int r = TID / 16 + h * 8, q = TID % 16 * 8;                                                            \
      COPY_ASYNC(16, sb, ((s) % 3 * 64 + r) * 128 + q, b, ((s) * 64 + r) * 256 + column + q, 1);             \
    }                                                                                                        \
  } while (0)

TILTH_KERNEL(warpgroup, 128)(GLOBAL const tilth_bfloat16 *restrict a, GLOBAL const tilth_bfloat16 *restrict b, GLOBAL float *restrict c) {
  GLOBAL_ARRAY(a, 128 * 256);
  GLOBAL_ARRAY(b, 256 * 256);
  GLOBAL_ARRAY(c, 128 * 256);
  SWIZZLED_PART(tilth_bfloat16, sa, 3 * 64 * 64, 64, 64, 0);
  SWIZZLED_PART(tilth_bfloat16, sb, 3 * 64 * 128, 128, 64, 3 * 64 * 64 * 2);
  int row = BID / 2 * 64, column = BID % 2 * 128;
  float d[64];
  UNROLL
  for (int e = 0; e < 64; e++) d[e] = 0;
  FETCH(0);
  COPY_COMMIT();
  for (int s = 0; s < 4; s++) {
    COPY_WAIT(0);
    WGMMA_WAIT(1);
    FENCE_ASYNC();
    BARRIER();
    if (s < 3) FETCH(s + 1);
    COPY_COMMIT();
    WGMMA_FENCE(d, 64);
    UNROLL
    for (int k = 0; k < 64; k += 16) WGMMA(128, BF16, d, 32, sa, s % 3 * 64 * 64 + k, 0, sb, (s % 3 * 64 + k) * 128, 1);
    WGMMA_COMMIT();
  }
  WGMMA_WAIT_ALL(d, 64);
  int r = row + TID / 32 * 16 + TID % 32 / 4, q = column + TID % 4 * 2;
  UNROLL
  for (int e = 0; e < 64; e++) STORE(c, (r + e / 32 * 8) * 256 + q + e % 32 / 2 * 8 + e % 2, d[e]);
}

/* Products of one warpgroup, 64 x k numbers, rows or columns first, and k x n, of which what lies side by side is told,
 * in two instructions that are waited for. */
#define WIDE_PRODUCT(name, type, TYPE, k, n, a_turned, b_turned, sum)                                                 \
  TILTH_KERNEL(name, 128)(GLOBAL const type *restrict a, GLOBAL const type *restrict b, GLOBAL sum *restrict c) {     \
    enum { row_a = a_turned ? 64 : 2 * k, rows_a = a_turned ? 2 * k : 64 };                                           \
    enum { row_b = b_turned ? n : 2 * k, rows_b = b_turned ? 2 * k : n };                                             \
    GLOBAL_ARRAY(a, 64 * 2 * k);                                                                                      \
    GLOBAL_ARRAY(b, 2 * k * n);                                                                                       \
    GLOBAL_ARRAY(c, 64 * n);                                                                                          \
    SWIZZLED_ARRAY(type, sa, 64 * 2 * k, row_a, rows_a);                                                              \
    SWIZZLED_ARRAY(type, sb, 2 * k * n, row_b, rows_b);                                                               \
    for (int i = TID; i < 64 * 2 * k; i += 128) STORE(sa, i, LOAD(a, i));                                             \
    for (int i = TID; i < 2 * k * n; i += 128) STORE(sb, i, LOAD(b, i));                                              \
    FENCE_ASYNC();                                                                                                    \
    BARRIER();                                                                                                        \
    sum d[n / 2];                                                                                                     \
    UNROLL                                                                                                            \
    for (int e = 0; e < n / 2; e++) d[e] = 1;                                                                         \
    WGMMA_FENCE(d, n / 2);                                                                                            \
    WGMMA(n, TYPE, d, n / 4, sa, 0, a_turned, sb, 0, b_turned);                                                       \
    WGMMA(n, TYPE, d, n / 4, sa, (a_turned ? k * row_a : k), a_turned, sb, (b_turned ? k * row_b : k), b_turned);     \
    WGMMA_COMMIT();                                                                                                   \
    WGMMA_WAIT_ALL(d, n / 2);                                                                                         \
    UNROLL                                                                                                            \
    for (int e = 0; e < n / 2; e++) {                                                                                 \
      int r = TID / 32 * 16 + TID % 32 / 4 + e / (n / 4) * 8, q = TID % 4 * 2 + e % (n / 4) / 2 * 8 + e % 2;          \
      STORE(c, r * n + q, d[e]);                                                                                      \
    }                                                                                                                 \
  }
WIDE_PRODUCT(wide_bf16, uint16_t, BF16, 16, 16, 0, 0, float)
WIDE_PRODUCT(wide_f16, uint16_t, F16, 16, 64, 1, 0, float)
WIDE_PRODUCT(wide_turned, uint16_t, F16, 16, 256, 1, 1, float)
WIDE_PRODUCT(wide_narrow, uint16_t, BF16, 16, 32, 0, 1, float)
WIDE_PRODUCT(wide_tf32, float, TF32, 8, 32, 0, 0, float)
WIDE_PRODUCT(wide_s8, int8_t, S8, 32, 32, 0, 0, int32_t)
WIDE_PRODUCT(wide_u8, uint8_t, U8, 32, 16, 0, 0, int32_t)
WIDE_PRODUCT(wide_s8_u8, uint8_t, S8_U8, 32, 16, 0, 0, int32_t)
WIDE_PRODUCT(wide_u8_s8, uint8_t, U8_S8, 32, 16, 0, 0, int32_t)
