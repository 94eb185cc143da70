/* What a card can do at most, and what it does now. */
#ifndef TILTH_RATES_H
#define TILTH_RATES_H
#include "driver.h"

/* Operations a second of fused multiply-adds in float32, each counting as two; 0 when they could not be measured. */
double driver_flops(const struct driver *d, CUstream stream);

/* Operations a second of products of matrices in a format: 0 TF32, 1 bfloat16, 2 float16, 3 int8, by one warp each; 4 to 7 the same by a
 * warpgroup each. 0 when they could not be measured, as on a card that has no such instructions. */
double driver_matrices(const struct driver *d, CUstream stream, int format);

/* Bytes a second that are read and written, both counted, by copies of so many bytes; 0 when they could not be measured. */
double driver_copies(const struct driver *d, CUstream stream, int64_t bytes);

/* Seconds of n samples each of multiply-adds and of copies of so many bytes, which take turns. */
CUresult driver_samples(const struct driver *d, CUstream stream, int64_t bytes, int n, double *compute, double *memory);

/* Work that keeps a card busy for half a millisecond or so. */
struct driver_busy {
  CUmodule module;
  CUfunction function;
  CUdeviceptr memory;
  int blocks;
};

/* Makes such work; `b` is all zero after an error. */
CUresult driver_busy_open(const struct driver *d, struct driver_busy *b);

/* Lets go of it, if it was made. */
void driver_busy_close(const struct driver *d, struct driver_busy *b);

/* Has the card do it n times, and returns at once. */
CUresult driver_busy_start(const struct driver *d, CUstream stream, const struct driver_busy *b, int n);

#endif
