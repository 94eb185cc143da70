/* Sums of rows of 256 numbers, one for each block, through shared memory alone. */
TILTH_KERNEL(sum_shared, 128)(GLOBAL const float *restrict x, GLOBAL float *restrict y) {
  GLOBAL_ARRAY(x, 256 * 9);
  GLOBAL_ARRAY(y, 9);
  SHARED_ARRAY(float, part, 128);
  STORE(part, TID, LOAD(x, BID * 256 + TID) + LOAD(x, BID * 256 + 128 + TID));
  for (int n = 64; n > 0; n /= 2) {
    BARRIER();
    if (TID < n) STORE(part, TID, LOAD(part, TID) + LOAD(part, TID + n));
  }
  if (TID == 0) STORE(y, BID, LOAD(part, 0));
}

/* The same by shuffles within warps; all threads get the sum, twice in the same shared memory. */
TILTH_KERNEL(sum_shuffled, 128)(GLOBAL const float *restrict x, GLOBAL float *restrict y) {
  GLOBAL_ARRAY(x, 256 * 9);
  GLOBAL_ARRAY(y, 9 * 128);
  SHARED_ARRAY(float, part, 4);
  float total = 0;
  UNROLL
  for (int turn = 0; turn < 2; turn++) {
    float s = LOAD(x, BID * 256 + turn * 128 + TID);
    UNROLL
    for (int n = 16; n > 0; n /= 2) s += SHUFFLE_DOWN(s, n);
    s = SHUFFLE(s, 0);
    if (TID % 32 == 0) STORE(part, TID / 32, s);
    BARRIER();
    float all = LOAD(part, TID % 4);
    all += SHUFFLE_XOR(all, 1);
    all += SHUFFLE_XOR(all, 2);
    total += all;
    BARRIER();
  }
  STORE(y, BID * 128 + TID, total);
}

/* The same by warps that each have a part of a row, and add to one number. */
TILTH_KERNEL(sum_atomic, 64)(GLOBAL const float *restrict x, GLOBAL float *restrict y, GLOBAL int32_t *restrict count) {
  GLOBAL_ARRAY(x, 256 * 9);
  GLOBAL_ARRAY(y, 9);
  GLOBAL_ARRAY(count, 9);
  float s = LOAD(x, BID * 64 + TID);
  UNROLL
  for (int mask = 16; mask > 0; mask /= 2) s += SHUFFLE_XOR(s, mask);
  if (TID % 32 == 0) {
    ATOMIC_ADD(y, BID / 4, s);
    ATOMIC_ADD(count, BID / 4, 1);
  }
}
