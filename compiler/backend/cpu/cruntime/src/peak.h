/* What the machine can do at best. */
#ifndef TILTH_PEAK_H
#define TILTH_PEAK_H
#include "tilth_kernel.h"

/* Measures, on the runtime's workers together, the float32 operations a second of fused multiply-adds and the bytes a second
 * read from memory; 0 for what could not be measured. */
void tilth_measure_peak(const struct tilth_runtime *rt, double *flops, double *bytes);

/* Measures, on the runtime's workers together, the operations a second of multiply-adds of 8-bit integers (16-bit ones where there is
 * no instruction for those); 0 where there is no instruction for sums of products. */
double tilth_measure_integer_peak(const struct tilth_runtime *rt);

#endif
