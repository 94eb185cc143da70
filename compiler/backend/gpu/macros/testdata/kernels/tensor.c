/* A product of m x k and the transpose of n x k numbers, in bfloat16, with m = 100, n = 72, k = 96: tiles of 64 x 64
 * by four warps, each of 32 x 32, from three stages of asynchronous copies. What lies outside is copied as zeros. */
TILTH_KERNEL(tensor, 128)(GLOBAL const tilth_bfloat16 *restrict a, GLOBAL const tilth_bfloat16 *restrict b, GLOBAL float *restrict c) {
  GLOBAL_ARRAY(a, 100 * 96);
  GLOBAL_ARRAY(b, 72 * 96);
  GLOBAL_ARRAY(c, 100 * 72);
  SHARED_ARRAY(tilth_bfloat16, sa, 3 * 64 * 40);
  SHARED_ARRAY(tilth_bfloat16, sb, 3 * 64 * 40);
  int lane = TID % 32, warp = TID / 32, wm = warp % 2 * 32, wn = warp / 2 * 32, row = BID / 2 * 64, column = BID % 2 * 64;
  float d[2][4][4];
  UNROLL
  for (int i = 0; i < 2; i++)
    UNROLL
    for (int j = 0; j < 4; j++)
      UNROLL
      for (int e = 0; e < 4; e++) d[i][j][e] = 0;
  UNROLL
  for (int s = 0; s < 2; s++) {
    UNROLL
    for (int h = 0; h < 2; h++) {
      int r = TID / 4 + h * 32, q = TID % 4 * 8;
      COPY_ASYNC(16, sa, (s * 64 + r) * 40 + q, a, (row + r) * 96 + s * 32 + q, row + r < 100);
      COPY_ASYNC(16, sb, (s * 64 + r) * 40 + q, b, (column + r) * 96 + s * 32 + q, column + r < 72);
    }
    COPY_COMMIT();
  }
  for (int s = 0; s < 3; s++) {
    COPY_WAIT(1);
    BARRIER();
    int next = s + 2;
    if (next < 3) {
      UNROLL
      for (int h = 0; h < 2; h++) {
        int r = TID / 4 + h * 32, q = TID % 4 * 8;
        COPY_ASYNC(16, sa, (next % 3 * 64 + r) * 40 + q, a, (row + r) * 96 + next * 32 + q, row + r < 100);
        COPY_ASYNC(16, sb, (next % 3 * 64 + r) * 40 + q, b, (column + r) * 96 + next * 32 + q, column + r < 72);
      }
    }
    COPY_COMMIT();
    UNROLL
    for (int k = 0; k < 32; k += 16) {
      uint32_t fa[2][4], fb[2][4];
      UNROLL
      for (int i = 0; i < 2; i++) {
        LDMATRIX_X4(fa[i], sa, (s % 3 * 64 + wm + i * 16 + lane % 16) * 40 + k + lane / 16 * 8);
        LDMATRIX_X4(fb[i], sb, (s % 3 * 64 + wn + i * 16 + lane % 8 + lane / 16 * 8) * 40 + k + lane / 8 % 2 * 8);
      }
      UNROLL
      for (int i = 0; i < 2; i++)
        UNROLL
        for (int j = 0; j < 4; j++) MMA_M16N8K16_BF16(d[i][j], 2, fa[i], &fb[j / 2][j % 2 * 2]);
    }
  }
  UNROLL
  for (int i = 0; i < 2; i++)
    UNROLL
    for (int j = 0; j < 4; j++)
      UNROLL
      for (int e = 0; e < 4; e++) {
        int r = row + wm + i * 16 + lane / 4 + e / 2 * 8, q = column + wn + j * 8 + lane % 4 * 2 + e % 2;
        if (r < 100 && q < 72) STORE(c, r * 72 + q, d[i][j][e]);
      }
}
