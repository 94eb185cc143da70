/* One kernel after the other: verified, then timed until the race with the best so far is lost or the budget is spent. */
#ifndef TILTH_MEASURE_H
#define TILTH_MEASURE_H
#include "bench.h"
#include "noise.h"

/* Room for what is said of one kernel. */
struct sheet {
  struct outcome outcome;
  double samples[MOST_SAMPLES_KEPT];
  char message[512];
};

/* Runs the kernel once and has its results verified; samples may use other data. Returns the seconds; the verdict is in outcome.status. */
double measure_first(struct bench *b, struct loaded *l, int32_t index, struct sheet *s);

/* Looks at the results once more after the samples, for kernels that only get the first run right; no sample of a wrong one stays. */
void measure_last(struct bench *b, struct loaded *l, int32_t index, struct sheet *s);

/* One timed sample: seconds of an execution, averaged over as many as `estimate` says are needed, each with cold constants. */
double measure_sample(struct bench *b, const struct loaded *l, double estimate);

/* Runs a kernel that is right back to back for as long as the options say, while the judge reads a meter. */
void measure_sustained(struct bench *b, const struct loaded *l, int32_t index);

/* Measures the kernels from options.first on and reports each. Those timed between a calm and a disturbed calibration are measured
 * again once the device is calm, as long as the patience lasts. Returns 0 on success. */
int measure_all(struct bench *b, struct noise *c, const struct tilth_kernel *const *kernels, int32_t n);

#endif
