/* Copies n numbers, four at a time. */
TILTH_KERNEL(copy, 64)(GLOBAL const float *restrict from, GLOBAL float *restrict to) {
  GLOBAL_ARRAY(from, 1000);
  GLOBAL_ARRAY(to, 1000);
  int i = (BID * 64 + TID) * 4;
  if (i < 1000) {
    V(float, 4) v = LOADV(float, 4, from, i);
    STOREV(float, 4, to, i, v);
  }
}
