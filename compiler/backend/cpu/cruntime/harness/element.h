/* Elements of every type and their seeded values. */
#ifndef TILTH_ELEMENT_H
#define TILTH_ELEMENT_H
#include "tilth_kernel.h"

/* Fills n elements with values that depend on the seed alone: floating point uniform in [-1, 1), narrow integers -4..3 or
 * 0..7, 32- and 64-bit integers 0..1 because they may be indices into small dimensions, booleans 0..1. */
void element_fill(void *data, int64_t n, int32_t dtype, uint64_t seed);

/* Fills elements begin <= i < end of them. */
void element_fill_some(void *data, int64_t begin, int64_t end, int32_t dtype, uint64_t seed);

/* Size of one element; 0 for an unknown type. */
int64_t element_bytes(int32_t dtype);

#endif
