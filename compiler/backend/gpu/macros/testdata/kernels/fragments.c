/* Products of one warp, each lane of which loads its own registers: 16 x k numbers, rows first, and k x 8, columns
 * first. */
#define LANES int lane = TID, row = lane / 4, quad = lane % 4

TILTH_KERNEL(product_f16, 32)(GLOBAL const uint16_t *restrict a, GLOBAL const uint16_t *restrict b, GLOBAL float *restrict c) {
  GLOBAL_ARRAY(a, 16 * 16);
  GLOBAL_ARRAY(b, 8 * 16);
  GLOBAL_ARRAY(c, 16 * 8);
  LANES;
  uint32_t x[4], y[2];
  UNROLL
  for (int r = 0; r < 4; r++) {
    int i = (row + r % 2 * 8) * 16 + r / 2 * 8 + quad * 2;
    x[r] = (uint32_t)LOAD(a, i) | (uint32_t)LOAD(a, i + 1) << 16;
  }
  UNROLL
  for (int r = 0; r < 2; r++) y[r] = (uint32_t)LOAD(b, row * 16 + r * 8 + quad * 2) | (uint32_t)LOAD(b, row * 16 + r * 8 + quad * 2 + 1) << 16;
  float d[4] = {1, 1, 1, 1};
  MMA_M16N8K16_F16(d, 2, x, y);
  UNROLL
  for (int e = 0; e < 4; e++) STORE(c, (row + e / 2 * 8) * 8 + quad * 2 + e % 2, d[e]);
}

TILTH_KERNEL(product_tf32, 32)(GLOBAL const float *restrict a, GLOBAL const float *restrict b, GLOBAL float *restrict c) {
  GLOBAL_ARRAY(a, 16 * 8);
  GLOBAL_ARRAY(b, 8 * 8);
  GLOBAL_ARRAY(c, 16 * 8);
  LANES;
  uint32_t x[4], y[2];
  UNROLL
  for (int r = 0; r < 4; r++) x[r] = TF32(LOAD(a, (row + r % 2 * 8) * 8 + r / 2 * 4 + quad));
  UNROLL
  for (int r = 0; r < 2; r++) y[r] = TF32(LOAD(b, row * 8 + r * 4 + quad));
  float d[4] = {1, 1, 1, 1};
  MMA_M16N8K8_TF32(d, 2, x, y);
  UNROLL
  for (int e = 0; e < 4; e++) STORE(c, (row + e / 2 * 8) * 8 + quad * 2 + e % 2, d[e]);
}

#define PRODUCT_8(name, MMA) \
  TILTH_KERNEL(name, 32)(GLOBAL const uint32_t *restrict a, GLOBAL const uint32_t *restrict b, GLOBAL int32_t *restrict c) { \
    GLOBAL_ARRAY(a, 16 * 8); \
    GLOBAL_ARRAY(b, 8 * 8); \
    GLOBAL_ARRAY(c, 16 * 8); \
    LANES; \
    uint32_t x[4], y[2]; \
    UNROLL \
    for (int r = 0; r < 4; r++) x[r] = LOAD(a, (row + r % 2 * 8) * 8 + r / 2 * 4 + quad); \
    UNROLL \
    for (int r = 0; r < 2; r++) y[r] = LOAD(b, row * 8 + r * 4 + quad); \
    int32_t d[4] = {1, 1, 1, 1}; \
    MMA(d, 2, x, y); \
    UNROLL \
    for (int e = 0; e < 4; e++) STORE(c, (row + e / 2 * 8) * 8 + quad * 2 + e % 2, d[e]); \
  }
PRODUCT_8(product_s8, MMA_M16N8K32_S8)
PRODUCT_8(product_u8, MMA_M16N8K32_U8)
PRODUCT_8(product_s8_u8, MMA_M16N8K32_S8_U8)
PRODUCT_8(product_u8_s8, MMA_M16N8K32_U8_S8)

/* The second matrix has rows first, which a transposing load turns. A warp's barrier suffices. */
TILTH_KERNEL(product_turned, 32)(GLOBAL const uint16_t *restrict a, GLOBAL const uint16_t *restrict b, GLOBAL float *restrict c) {
  GLOBAL_ARRAY(a, 16 * 16);
  GLOBAL_ARRAY(b, 16 * 8);
  GLOBAL_ARRAY(c, 16 * 8);
  SHARED_ARRAY(uint16_t, sa, 16 * 16);
  SHARED_ARRAY(uint16_t, sb, 16 * 8);
  LANES;
  STOREV(uint16_t, 8, sa, lane * 8, LOADV(uint16_t, 8, a, lane * 8));
  STOREV(uint16_t, 4, sb, lane * 4, LOADV(uint16_t, 4, b, lane * 4));
  WARP_BARRIER();
  uint32_t x[4], y[2];
  LDMATRIX_X4(x, sa, lane % 16 * 16 + lane / 16 * 8);
  LDMATRIX_X2_TRANS(y, sb, lane % 16 * 8);
  float d[4] = {1, 1, 1, 1};
  MMA_M16N8K16_BF16(d, 2, x, y);
  UNROLL
  for (int e = 0; e < 4; e++) STORE(c, (row + e / 2 * 8) * 8 + quad * 2 + e % 2, d[e]);
}
