/* What the harness says: one JSON object a line, on the descriptor that was its standard output. */
#ifndef TILTH_REPORT_H
#define TILTH_REPORT_H
#include "tilth_kernel.h"

/* Reserves standard output for reports and redirects what kernels print to standard error, which is discarded. Each line begins with the first
 * 64 bytes of standard input, a token that identifies genuine lines. Returns 0 or errno. */
int report_open(void);

/* Object `module` of candidates is about to be loaded, which may run code of it. */
void report_load(int32_t module);

/* The candidates were loaded: their ids in order, and the numbers of the objects that they are in. */
void report_module(const struct tilth_kernel *const *kernels, const int32_t *modules, int32_t n);

/* The device is ready, and what is to be done with it may be said. */
void report_ready(void);

/* What the workload's arguments are; the judge wants to know before it answers anything. */
void report_workload(const struct tilth_arg *args, int32_t n);

/* Kernel `index` ran, and its outputs are handed in. Its algorithm needs `growth` times the tolerance, it says. */
void report_ran(int32_t index, double growth);

/* Kernel `index` is about to be loaded with data and run; -1 stands for the reference. */
void report_start(int32_t index);

/* Kernel `index` runs back to back from now on, and does so no longer. */
void report_sustain(int32_t index);
void report_sustained(int32_t index);

struct outcome {
  const char *status; /* "ok", "wrong" or "overrun" */
  const char *message; /* empty when ok */
  const double *samples; /* seconds of one execution each */
  int n_samples;
  double run_seconds; /* spent on this kernel, all included */
};

void report_outcome(int32_t index, const char *id, const struct outcome *o);

/* How long the calibration kernel took just now, and what is left of the patience. What was reported since the calibration before was
 * timed between the two. */
void report_calibration(double seconds, double patience);

/* Kernel `index` touched memory that is not its own. Safe in a signal handler as far as snprintf is. */
void report_fault(int32_t index, const char *message);

/* Kernel `index` ran longer than it may by the clock of the device, which ended it. */
void report_timeout(int32_t index, const char *message);

/* The device answers no longer, or not as it should, which is no kernel's doing. */
void report_lost(const char *message);

/* The harness itself cannot go on. */
void report_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reports that the workload exceeds the device's memory, whichever kernel computes it. */
void report_too_large(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* All kernels have been reported, or all that the judge asked for is handed in. */
void report_done(void);

#endif
