/* What a card can do at most, and what it does now. */
#ifndef TILTH_RATES_H
#define TILTH_RATES_H
#include "driver.h"

/* Operations a second of fused multiply-adds in float32, each counting as two; 0 when they could not be measured. */
double driver_flops(const struct driver *d, CUstream stream);

/* Bytes a second that are read and written, both counted, by copies of so many bytes; 0 when they could not be measured. */
double driver_copies(const struct driver *d, CUstream stream, int64_t bytes);

/* Seconds of n samples each of multiply-adds and of copies of so many bytes, which take turns. */
CUresult driver_samples(const struct driver *d, CUstream stream, int64_t bytes, int n, double *compute, double *memory);

/* Has the card multiply and add n times, and returns at once. */
CUresult driver_busy(const struct driver *d, CUstream stream, int n);

#endif
