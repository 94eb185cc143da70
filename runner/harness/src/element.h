/* Elements of every type: seeded values and comparison. */
#ifndef TILTH_ELEMENT_H
#define TILTH_ELEMENT_H
#include "tilth_kernel.h"

/* Fills n elements with values that depend on the seed alone: floating point uniform in [-1, 1), narrow integers -4..3 or
 * 0..7, 32- and 64-bit integers 0..1 because they may be indices into small dimensions, booleans 0..1. */
void element_fill(void *data, int64_t n, int32_t dtype, uint64_t seed);

/* Size of one element; 0 for an unknown type. */
int64_t element_bytes(int32_t dtype);

struct difference {
  double relative;   /* largest |got - want| / largest |want|; infinity where only one of them is NaN or infinite */
  int64_t at;        /* an element with that difference; set only when it is over the tolerance, like got and want */
  double got, want;
};

/* Compares n elements. Integers differ by infinity unless they are equal; NaN equals NaN. */
struct difference element_compare(const void *got, const void *want, int64_t n, int32_t dtype, double tolerance);

#endif
