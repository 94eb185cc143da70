/* Kernels that were measured before take turns, so that what disturbs the device disturbs all of them alike. */
#ifndef TILTH_FINALISTS_H
#define TILTH_FINALISTS_H
#include "bench.h"
#include "noise.h"

enum { MOST_FINALISTS = 8 };

/* Verifies the kernels, then samples them in turns (A B C A B C ...) until one's interval ends before all others' begin or the budget,
 * which is for each kernel, is spent; reports all in the end. Rounds between a calm and a disturbed calibration do not count and
 * are run again once the device is calm, as long as the patience lasts. Returns 0 on success. */
int finalists_race(struct bench *b, struct noise *c, const struct tilth_kernel *const *kernels, int32_t n);

#endif
