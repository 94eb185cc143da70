/* What the harness says: one JSON object a line, on the descriptor that was its standard output. */
#ifndef TILTH_REPORT_H
#define TILTH_REPORT_H
#include "tilth_kernel.h"

/* Keeps standard output for reports and sends what kernels print to /dev/null. 0 on success, else errno. */
int report_open(void);

/* The candidates were loaded: their ids in order. */
void report_module(const struct tilth_kernel *const *kernels, int32_t n);

/* Kernel `index` is about to be loaded with data and run; -1 stands for the reference. */
void report_start(int32_t index);

struct outcome {
  const char *status; /* "ok", "wrong" or "overrun" */
  const char *message; /* empty when ok */
  double relative_error;
  const double *samples; /* seconds of one execution each */
  int n_samples;
  double run_seconds; /* spent on this kernel, all included */
};

void report_outcome(int32_t index, const char *id, const struct outcome *o);

/* How long the calibration kernel took just now. What was reported since the calibration before was timed between the two. */
void report_calibration(double seconds);

/* Kernel `index` touched memory that is not its own. Safe in a signal handler as far as snprintf is. */
void report_fault(int32_t index, const char *message);

/* The harness itself cannot go on. */
void report_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* All kernels have been reported. */
void report_done(void);

#endif
