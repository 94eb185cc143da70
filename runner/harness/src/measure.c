#define _GNU_SOURCE
#include <math.h>
#include <string.h>

#include "bench.h"

/* A kernel whose better of two single runs is so many times the incumbent gets no further samples. */
#define HOPELESS 1.5
/* After so many samples one whose fastest is still slower than this many times the incumbent is dropped. */
#define RACE_SAMPLES 3
#define RACE_SLOWER 1.05

/* Seconds of one execution, averaged over repeats, each with cold constants. */
static double sample(const struct bench *b, const struct loaded *l, int64_t repeats) {
  double total = 0;
  for (int64_t k = 0; k < repeats; k++) {
    bench_chill(b, l);
    total += bench_run(b, l);
  }
  return total / (double)repeats;
}

/* Takes samples until the budget is spent or the race with the incumbent is lost. Returns how many. */
static int take_samples(const struct bench *b, const struct loaded *l, double estimate, double *samples) {
  const struct options *o = b->options;
  double best = INFINITY, begin = seconds_now(); /* not the estimate: its constants were warm */
  int64_t repeats = estimate < o->sample_seconds ? (int64_t)(o->sample_seconds / (estimate > 1e-8 ? estimate : 1e-8)) + 1 : 1;
  for (int n = 0; n < o->samples;) {
    samples[n] = sample(b, l, repeats);
    if (samples[n] < best) best = samples[n];
    n++;
    int lost = o->incumbent_seconds > 0 && n >= RACE_SAMPLES && best > RACE_SLOWER * o->incumbent_seconds;
    if (lost || seconds_now() - begin + samples[n - 1] * (double)repeats > o->budget_seconds) return n;
  }
  return o->samples;
}

void measure(struct bench *b, struct loaded *l, struct outcome *o, double *samples, char *message, int message_bytes) {
  bench_poison(b);
  o->message = message, o->samples = samples;
  double first = bench_run(b, l);
  o->status = bench_verify(b, l, &o->relative_error, message, message_bytes);
  if (strcmp(o->status, "ok")) return;
  double second = bench_run(b, l), incumbent = b->options->incumbent_seconds;
  double estimate = first < second ? first : second;
  if (incumbent > 0 && estimate > HOPELESS * incumbent) {
    samples[0] = first, samples[1] = second;
    o->n_samples = 2;
  } else {
    o->n_samples = take_samples(b, l, estimate, samples);
  }
  /* Again, for kernels that only get the first run right. */
  o->status = bench_verify(b, l, &o->relative_error, message, message_bytes);
  if (strcmp(o->status, "ok")) o->n_samples = 0;
}
