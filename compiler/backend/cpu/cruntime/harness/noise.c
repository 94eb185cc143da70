#define _GNU_SOURCE
#include "noise.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "bench.h"
#include "device.h"

enum { RUNS = 3, STEPS = 8000, CHAINS = 10, LANES = 8, FLOATS = 64 << 10, PASSES = 12 };
/* Calibrations on a quiet virtual machine differ by less. */
#define DISTURBED 1.1
#define FIRST_WAIT 5e-3

typedef float lanes __attribute__((vector_size(4 * LANES)));

int noise_open(struct noise *c, const struct options *o, const struct tilth_runtime *rt) {
  *c = (struct noise){rt, NULL, o->calibration_seconds, o->patience_seconds};
  if (device_is_open()) return 0; /* it has a calibration of its own */
  size_t bytes = (size_t)rt->workers * FLOATS * sizeof *c->data;
  c->data = aligned_alloc(64, bytes);
  if (!c->data) {
    report_error("allocating %zu bytes for the calibration", bytes);
    return -1;
  }
  for (int64_t k = 0; k < (int64_t)rt->workers * FLOATS; k++) c->data[k] = 1;
  return 0;
}

/* Independent chains hide the latency of an instruction. */
static lanes multiply_add(lanes seed) {
  lanes chain[CHAINS], sum = seed;
  for (int k = 0; k < CHAINS; k++) chain[k] = seed + (float)k;
  for (int step = 0; step < STEPS; step++)
#pragma GCC unroll 10
    for (int k = 0; k < CHAINS; k++) chain[k] = chain[k] * 0.5f + seed;
  for (int k = 0; k < CHAINS; k++) sum += chain[k];
  return sum;
}

static void calibrate(void *closure, int64_t begin, int64_t end, int32_t worker) {
  struct noise *c = closure;
  (void)begin, (void)end;
  lanes *data = (lanes *)(c->data + (int64_t)worker * FLOATS), sum = {0};
  for (int run = 0; run < PASSES; run++) {
    sum += multiply_add(data[run]);
    for (int k = 0; k < FLOATS / LANES; k += 4) sum += data[k] + data[k + 1] + data[k + 2] + data[k + 3];
  }
  data[0] = sum * 0.0f + 1.0f;
}

static double timed(struct noise *c) {
  c->runtime->parallel(c->runtime, calibrate, c, c->runtime->workers); /* wakes the workers and fills the caches */
  double begin = seconds_now();
  for (int run = 0; run < RUNS; run++) c->runtime->parallel(c->runtime, calibrate, c, c->runtime->workers);
  return seconds_now() - begin;
}

double noise_measure(struct noise *c) {
  double seconds = device_is_open() ? device_calibrate() : timed(c);
  if (c->reference == 0 || seconds < c->reference) c->reference = seconds;
  return seconds;
}

int noise_disturbed(const struct noise *c, double seconds) { return seconds > DISTURBED * c->reference; }

void noise_spend(struct noise *c, double since) { c->patience -= seconds_now() - since; }

double noise_wait(struct noise *c, double seconds) {
  for (double wait = FIRST_WAIT; noise_disturbed(c, seconds) && c->patience > 0; wait *= 2) {
    wait = fmin(wait, c->patience);
    struct timespec t = {0, (long)(1e9 * fmin(wait, 0.5))};
    double begin = seconds_now();
    nanosleep(&t, NULL);
    seconds = noise_measure(c);
    noise_spend(c, begin);
  }
  return seconds;
}
