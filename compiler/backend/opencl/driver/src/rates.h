/* What a device can do at most, and work that is always the same. */
#ifndef TILTH_OPENCL_RATES_H
#define TILTH_OPENCL_RATES_H
#include "opencl.h"

/* The work: chains of multiply-adds, in memory for their sums. */
struct opencl_work {
  cl_kernel kernel;
  cl_mem sums;
  int64_t blocks;
};

/* 0, or -1 with a message. */
int opencl_work_open(const struct opencl_device *d, struct opencl_work *w, char *message, int message_bytes);

/* Lets go of it. */
void opencl_work_close(const struct opencl_device *d, const struct opencl_work *w);

/* Does it, and returns the seconds it took; less than 0 after an error. */
double opencl_work_do(const struct opencl_device *d, const struct opencl_work *w);

/* Operations a second of multiply-adds in float32, each counting as two; 0 when they could not be measured. */
double opencl_flops(const struct opencl_device *d);

/* Bytes a second that are read and written, both counted, by copies of so many bytes; 0 when they could not be measured. */
double opencl_copies(const struct opencl_device *d, int64_t bytes);

#endif
