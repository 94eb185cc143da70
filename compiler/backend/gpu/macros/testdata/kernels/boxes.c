/* A matrix of 40 rows of 72 numbers, turned: a block has a tile of 16 rows by 32 columns, of which some lie behind the
 * matrix, and the box before it, of which all do at the left edge. */
TILTH_KERNEL(turned, 128)(GLOBAL const float *restrict x, GLOBAL float *restrict y, TENSOR_MAP map) {
  GLOBAL_ARRAY(x, 40 * 72);
  GLOBAL_ARRAY(y, 96 * 48);
  TENSOR_MAP_OF(map, x, turned, 2);
  SWIZZLED_ARRAY(float, tiles, 2 * 16 * 32, 32, 16);
  SHARED_ARRAY(uint64_t, full, 1);
  if (TID == 0) {
    MBARRIER_INIT(full, 0, 1);
  }
  FENCE_ASYNC();
  BARRIER();
  const int row = BID / 3 * 16, column = BID % 3 * 32;
  if (TID == 0) {
    MBARRIER_EXPECT(full, 0, 4096);
    COPY_TENSOR_2D(tiles, 0, map, column, row, full, 0);
    COPY_TENSOR_2D(tiles, 512, map, column - 32, row, full, 0);
  }
  MBARRIER_WAIT(full, 0, 0);
  for (int i = TID; i < 512; i += 128)
    STORE(y, (column + i / 16) * 48 + row + i % 16,
          LOAD(tiles, i % 16 * 32 + i / 16) - LOAD(tiles, 512 + i % 16 * 32 + i / 16));
}

/* Images of 5 by 6 positions and 80 channels of 16 bits: a block has 4 by 4 positions of one image from a place before
 * it on, and all channels in panels of 64 and a part of one. Both phases of the mbarrier are used, and another one in
 * its place. */
TILTH_KERNEL(windows, 64)(GLOBAL const uint16_t *restrict x, GLOBAL uint16_t *restrict y, TENSOR_MAP map) {
  GLOBAL_ARRAY(x, 2 * 5 * 6 * 80);
  GLOBAL_ARRAY(y, 2 * 16 * 128);
  TENSOR_MAP_OF(map, x, windows, 2);
  SWIZZLED_ARRAY(uint16_t, window, 16 * 128, 128, 16);
  SHARED_ARRAY(uint64_t, full, 1);
  for (int turn = 0; turn < 2; turn++) {
    if (TID == 0) {
      MBARRIER_INIT(full, 0, 1);
    }
    FENCE_ASYNC();
    BARRIER();
    for (int panel = 0; panel < 2; panel++) {
      if (TID == 0) {
        MBARRIER_EXPECT(full, 0, 2048);
        COPY_TENSOR_4D(window, panel * 64, map, panel * 64, -1, 3 * turn - 1, BID, full, 0);
      }
      MBARRIER_WAIT(full, 0, panel);
      BARRIER();
    }
    if (TID == 0) {
      MBARRIER_INVALIDATE(full, 0);
    }
    for (int i = TID; turn == 1 && i < 16 * 128; i += 64) STORE(y, BID * 16 * 128 + i, LOAD(window, i));
  }
}

/* The other words: a vector of boxes along three and five dimensions, which all hold the same element. */
TILTH_KERNEL(many, 32)(GLOBAL const float *restrict x, GLOBAL float *restrict y, TENSOR_MAP three, TENSOR_MAP five) {
  GLOBAL_ARRAY(x, 2 * 2 * 2 * 2 * 8);
  GLOBAL_ARRAY(y, 128);
  TENSOR_MAP_OF(three, x, many, 2);
  TENSOR_MAP_OF(five, x, many, 3);
  SWIZZLED_ARRAY(float, s, 2 * 8 * 8, 8, 8);
  SHARED_ARRAY(uint64_t, full, 1);
  if (TID == 0) {
    MBARRIER_INIT(full, 0, 1);
    FENCE_ASYNC();
    MBARRIER_EXPECT(full, 0, 512);
    COPY_TENSOR_3D(s, 0, three, 0, 1, 0, full, 0);
    COPY_TENSOR_5D(s, 64, five, 0, 0, 1, 0, 1, full, 0);
  }
  BARRIER();
  MBARRIER_WAIT(full, 0, 0);
  for (int i = TID; i < 128; i += 32) STORE(y, i, LOAD(s, i));
}
