#define _GNU_SOURCE
#include "measure.h"

#include <math.h>
#include <string.h>

#include "fault.h"
#include "judge.h"
#include "procstate.h"
#include "race.h"

/* A kernel whose first two runs take this many times as long as the best is not sampled. */
#define SLOWDOWN_LIMIT 3
/* No kernel is repeated as often as one would be that takes less than this: putting constants out of the caches takes longer. */
#define LEAST_SECONDS 2e-7
/* What is measured between two calibrations takes about so long: these then cost three per cent. */
#define SEGMENT_SECONDS 60e-3
/* A kernel that wants more memory than this, for its scratch or for a constant, gets it when its turn comes. */
#define MOST_SHARED (256 << 20)

double measure_first(struct bench *b, struct loaded *l, int32_t index, struct sheet *s) {
  bench_poison(b);
  s->outcome = (struct outcome){.message = s->message, .samples = s->samples};
  s->message[0] = 0;
  bench_hide_ends(l);
  double seconds = bench_run(b, l);
  bench_show_ends(l);
  s->outcome.status = bench_verify(b, l, index, s->message, sizeof s->message);
  return seconds;
}

void measure_last(struct bench *b, struct loaded *l, int32_t index, struct sheet *s) {
  s->outcome.status = bench_verify(b, l, index, s->message, sizeof s->message);
  if (strcmp(s->outcome.status, "ok")) s->outcome.n_samples = 0;
}

double measure_sample(struct bench *b, const struct loaded *l, double estimate) {
  double least = b->options->sample_seconds, total = 0;
  int32_t first = bench_first(b);
  int64_t repeats = estimate < least ? (int64_t)(least / fmax(estimate, LEAST_SECONDS)) + 1 : 1;
  for (int64_t k = 0; k < repeats; k++) {
    for (int32_t p = first; p < TILTH_POINTS; p++) {
      bench_point(b, p);
      bench_flush(b, l);
      if (k == repeats - 1 && p == TILTH_POINTS - 1) bench_disturb(b); /* the last run detects kernels that skip the work of earlier ones */
      total += bench_once(b, l);
    }
  }
  return total / (double)(repeats * (TILTH_POINTS - first));
}

void measure_sustained(struct bench *b, const struct loaded *l, int32_t index) {
  double seconds = b->options->sustain_seconds;
  if (seconds <= 0) return;
  report_sustain(index);
  for (double begin = seconds_now(); seconds_now() - begin < seconds;) bench_run(b, l);
  report_sustained(index);
}

/* The best candidate so far: its median, and the upper end of its interval, which bounds others. All 0 at the start. */
struct incumbent {
  double median, seconds, spread;
};

/* Reports whether n samples suffice: the candidate is slower than the best by any margin, and so cannot become the best. Finalists distinguish
 * candidates of equal speed. The verified run counts as a sample, so that a slow candidate usually needs only one more. */
static int settled(const struct options *o, const struct incumbent *best, double first, const double *samples, int n) {
  double looks[MOST_SAMPLES_KEPT + 1] = {first};
  memcpy(looks + 1, samples, n * sizeof *samples);
  if (best->seconds == 0) return 0;
  return race_lost(looks, n + 1, best->seconds, best->spread) || (n >= o->least_samples && race_median(samples, n) > best->median);
}

/* Takes samples until the budget is spent or they are enough. Returns how many. */
static int take_samples(struct bench *b, const struct loaded *l, const struct incumbent *best, double first, double *samples) {
  const struct options *o = b->options;
  double begin = seconds_now(), estimate = first;
  for (int n = 0; n < o->samples;) {
    double started = seconds_now();
    samples[n] = measure_sample(b, l, estimate);
    estimate = fmin(estimate, samples[n++]);
    double now = seconds_now();
    if (bench_disturbed(b)) return n; /* so that measure_last finds it: a later run might compute */
    if (settled(o, best, first, samples, n) || now - begin + (now - started) > o->budget_seconds) return n;
  }
  return o->samples;
}

static void challenge(struct incumbent *best, const struct outcome *o) {
  if (o->n_samples == 0) return;
  double median = race_median(o->samples, o->n_samples);
  if (best->seconds > 0 && median >= best->median) return;
  *best = (struct incumbent){median, race_interval(o->samples, o->n_samples).high, race_spread(o->samples, o->n_samples)};
}

static void measure(struct bench *b, struct loaded *l, int32_t index, struct incumbent *best, struct sheet *s) {
  double first = measure_first(b, l, index, s);
  if (strcmp(s->outcome.status, "ok")) return;
  int hopeless = best->seconds > 0 && first > SLOWDOWN_LIMIT * best->seconds;
  if (hopeless) {
    s->samples[0] = bench_run(b, l), s->outcome.n_samples = 1;
    hopeless = s->samples[0] > SLOWDOWN_LIMIT * best->seconds;
  }
  if (!hopeless) s->outcome.n_samples = take_samples(b, l, best, first, s->samples);
  measure_sustained(b, l, index);
  measure_last(b, l, index, s);
  if (!b->options->alike) challenge(best, &s->outcome);
}

/* What the kernels of a process leave to those after them. */
struct state {
  struct incumbent best;
  struct buffer scratch;
  struct loaded loaded;
};

static int measure_kernel(struct bench *b, struct state *state, const struct tilth_kernel *kernel, int32_t index) {
  struct sheet s;
  double begin = seconds_now();
  fault_watch(index, &state->loaded);
  report_start(index);
  if (bench_load(b, &state->loaded, kernel, &state->scratch)) return -1;
  measure(b, &state->loaded, index, &state->best, &s);
  procstate_end();
  s.outcome.run_seconds = seconds_now() - begin;
  report_outcome(index, kernel->id, &s.outcome);
  return 0;
}

static int measure_some(struct bench *b, struct state *state, const struct tilth_kernel *const *kernels, int32_t begin, int32_t end) {
  for (int32_t k = begin; k < end; k++)
    if (measure_kernel(b, state, kernels[k], k)) return -1;
  return 0;
}

static int measure_in_turn(struct bench *b, struct noise *c, struct state *state, const struct tilth_kernel *const *kernels, int32_t n) {
  struct incumbent before = state->best;
  double started = seconds_now();
  for (int32_t begin = b->options->first, end = begin; end < n;) {
    if (measure_kernel(b, state, kernels[end], end)) return -1;
    if (++end < n && seconds_now() - started < SEGMENT_SECONDS) continue;
    double seconds = noise_measure(c);
    while (noise_disturbed(c, seconds) && c->patience > 0) {
      noise_wait(c, seconds);
      state->best = before; /* a kernel does not race with what the disturbance made of it */
      double again = seconds_now();
      if (measure_some(b, state, kernels, begin, end)) return -1;
      noise_spend(c, again);
      seconds = noise_measure(c);
    }
    report_calibration(seconds, c->patience);
    judge_wait(b); /* until what was measured is judged */
    begin = end, before = state->best, started = seconds_now();
  }
  return 0;
}

int measure_all(struct bench *b, struct noise *c, const struct tilth_kernel *const *kernels, int32_t n) {
  static struct state state;
  const struct options *o = b->options;
  state.best = o->alike ? (struct incumbent){0} : (struct incumbent){o->incumbent_median, o->incumbent_seconds, o->incumbent_spread};
  if (bench_reserve(b, &state.scratch, kernels, n, MOST_SHARED)) return -1;
  bench_expect(&state.loaded, kernels, n, MOST_SHARED);
  if (measure_in_turn(b, c, &state, kernels, n)) return -1;
  fault_watch(-1, NULL);
  bench_unload(&state.loaded);
  buffer_close(&state.scratch);
  return 0;
}
