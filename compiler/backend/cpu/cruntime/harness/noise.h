/* Is the device as fast as it can be? Other guests of a shared machine, other programs and a hot processor slow it down, often for
 * seconds: then every sample is too long, and nothing in the samples says so. */
#ifndef TILTH_NOISE_H
#define TILTH_NOISE_H
#include "options.h"
#include "tilth_kernel.h"

struct noise {
  const struct tilth_runtime *runtime;
  float *data;       /* the buffers of all workers; NULL for a device */
  double reference;  /* least seconds of a calibration known; 0 = none */
  double patience;   /* seconds that may still be spent on waiting and on measuring again; below 0 when more was */
};

/* 0 on success; otherwise a message was reported. */
int noise_open(struct noise *c, const struct options *o, const struct tilth_runtime *rt);

/* Times the calibration kernel, which is always the same work on all workers: multiply-adds in registers, as many as take about half
 * a millisecond, feel the processor's clock and the time that it is taken away; passes over a buffer that fits into any second cache
 * but in no first one feel neighbours on the core and its caches. Main memory is left out: its bandwidth differs from kernel to
 * kernel in how much it matters. Several runs are timed together, for what disturbs comes in slices of milliseconds. */
double noise_measure(struct noise *c);

/* Whether a calibration is too long for what was timed beside it. */
int noise_disturbed(const struct noise *c, double seconds);

/* Takes what was spent since a point in time off the patience. */
void noise_spend(struct noise *c, double since);

/* Waits until the device is calm again or the patience is spent. Returns the last calibration. */
double noise_wait(struct noise *c, double seconds);

#endif
