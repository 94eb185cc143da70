/* What the machine can do at best. */
#ifndef TILTH_PEAK_H
#define TILTH_PEAK_H
#include "tilth_kernel.h"

/* Measures, on the runtime's workers together, the float32 operations a second of fused multiply-adds and the bytes a second
 * read from memory; 0 for what could not be measured. */
void tilth_measure_peak(const struct tilth_runtime *rt, double *flops, double *bytes);

#endif
