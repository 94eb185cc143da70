/* A product of 64 x 48 and 48 x 96 numbers in tiles of 32 x 32, 4 x 4 for each thread. */
TILTH_KERNEL(simt, 64)(GLOBAL const float *restrict a, GLOBAL const float *restrict b, GLOBAL float *restrict c) {
  GLOBAL_ARRAY(a, 64 * 48);
  GLOBAL_ARRAY(b, 48 * 96);
  GLOBAL_ARRAY(c, 64 * 96);
  SHARED_ARRAY(float, sa, 16 * 36);
  SHARED_ARRAY(float, sb, 16 * 32);
  int row = BID / 3 * 32, column = BID % 3 * 32, ty = TID / 8 * 4, tx = TID % 8 * 4;
  float sum[4][4];
  UNROLL
  for (int i = 0; i < 4; i++)
    UNROLL
    for (int j = 0; j < 4; j++) sum[i][j] = 0;
  for (int k0 = 0; k0 < 48; k0 += 16) {
    UNROLL
    for (int h = 0; h < 2; h++) {
      int r = h * 16 + TID / 4, q = TID % 4 * 4;
      V(float, 4) v = LOADV(float, 4, a, (row + r) * 48 + k0 + q);
      UNROLL
      for (int e = 0; e < 4; e++) STORE(sa, (q + e) * 36 + r, v[e]);
      int k = h * 8 + TID / 8, l = TID % 8 * 4;
      STOREV(float, 4, sb, k * 32 + l, LOADV(float, 4, b, (k0 + k) * 96 + column + l));
    }
    BARRIER();
    UNROLL
    for (int k = 0; k < 16; k++) {
      V(float, 4) x = LOADV(float, 4, sa, k * 36 + ty), y = LOADV(float, 4, sb, k * 32 + tx);
      UNROLL
      for (int i = 0; i < 4; i++)
        UNROLL
        for (int j = 0; j < 4; j++) sum[i][j] = __builtin_fmaf(x[i], y[j], sum[i][j]);
    }
    BARRIER();
  }
  UNROLL
  for (int i = 0; i < 4; i++) {
    V(float, 4) v = {sum[i][0], sum[i][1], sum[i][2], sum[i][3]};
    STOREV(float, 4, c, (row + ty + i) * 96 + column + tx, v);
  }
}
