/* What a card can do at most. */
#ifndef TILTH_RATES_H
#define TILTH_RATES_H
#include "driver.h"

/* Operations a second of fused multiply-adds in float32, each counting as two; 0 when they could not be measured. */
double driver_flops(const struct driver *d, CUstream stream);

/* Bytes a second that are read and written, both counted, by copies of so many bytes; 0 when they could not be measured. */
double driver_copies(const struct driver *d, CUstream stream, int64_t bytes);

#endif
