/* Sums of the columns of 9 rows of 256 numbers, by blocks of 128 columns: one thread has rows copied ahead of the
 * others, to a ring of two. */
TILTH_KERNEL(bulk, 128)(GLOBAL const float *restrict x, GLOBAL float *restrict y) {
  GLOBAL_ARRAY(x, 9 * 256);
  GLOBAL_ARRAY(y, 256);
  SHARED_ARRAY(float, ring, 2 * 128);
  SHARED_ARRAY(uint64_t, full, 2);
  if (TID == 0) {
    MBARRIER_INIT(full, 0, 1);
    MBARRIER_INIT(full, 1, 1);
    FENCE_ASYNC();
  }
  BARRIER();
  float sum = 0;
  for (int row = 0; row < 10; row++) {
    if (row < 9 && TID == 0) {
      MBARRIER_EXPECT(full, row % 2, 512);
      COPY_BULK(512, ring, row % 2 * 128, x, row * 256 + BID * 128, full, row % 2);
    }
    if (row > 0) {
      MBARRIER_WAIT(full, (row - 1) % 2, (row - 1) / 2 % 2);
      sum += LOAD(ring, (row - 1) % 2 * 128 + TID);
      BARRIER();
    }
  }
  STORE(y, BID * 128 + TID, sum);
}
