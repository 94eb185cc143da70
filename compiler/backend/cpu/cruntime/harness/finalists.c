#define _GNU_SOURCE
#include "finalists.h"

#include <math.h>
#include <string.h>

#include "fault.h"
#include "judge.h"
#include "measure.h"
#include "procstate.h"
#include "race.h"

#define SEGMENT_SECONDS 60e-3
/* Finalists whose packed constants take more bytes than this together do not take turns, but for two. */
#define MOST_PACKED (512 << 20)

struct finalist {
  const struct tilth_kernel *kernel;
  int32_t index;
  struct loaded loaded;
  struct sheet sheet;
  double estimate;
};

struct field {
  struct finalist all[MOST_FINALISTS];
  int n;
  struct buffer scratch;
};

static int right(const struct finalist *f) { return strcmp(f->sheet.outcome.status, "ok") == 0; }

static void turn(const struct finalist *f) {
  fault_watch(f->index, &f->loaded);
  report_start(f->index);
}

static int enter(struct bench *b, struct field *field, const struct tilth_kernel *kernel, int32_t index) {
  struct finalist *f = &field->all[field->n++];
  f->kernel = kernel, f->index = index;
  double begin = seconds_now();
  turn(f);
  if (bench_load(b, &f->loaded, kernel, &field->scratch)) return -1;
  f->estimate = measure_first(b, &f->loaded, index, &f->sheet);
  if (right(f)) f->estimate = fmin(f->estimate, bench_run(b, &f->loaded));
  procstate_end();
  f->loaded.workspace.pages = NULL; /* the others will write over its canaries */
  f->sheet.outcome.run_seconds = seconds_now() - begin;
  return 0;
}

/* Lets kernels enter from number k on, as many as there is room for, and returns the number of the next one; -1 on an error. */
static int32_t enter_some(struct bench *b, struct field *field, const struct tilth_kernel *const *kernels, int32_t k, int32_t n) {
  int64_t packed = 0;
  for (; k < n && field->n < MOST_FINALISTS; k++) {
    if (b->options->without >> k & 1) continue;
    packed += bench_packed(kernels[k]);
    if (field->n >= 2 && packed > MOST_PACKED) break;
    if (enter(b, field, kernels[k], k)) return -1;
  }
  return k;
}

/* Reports the finalists and gives their memory back. */
static void leave(struct bench *b, struct field *field) {
  for (int k = 0; k < field->n; k++) {
    struct finalist *f = &field->all[k];
    turn(f);
    if (right(f)) {
      measure_sustained(b, &f->loaded, f->index);
      bench_disturb(b);
      bench_run(b, &f->loaded); /* the outputs are those of the one before */
      measure_last(b, &f->loaded, f->index, &f->sheet);
    }
    report_outcome(f->index, f->kernel->id, &f->sheet.outcome);
    bench_unload(&f->loaded);
  }
  field->n = 0;
}

/* Whether one finalist is faster than all others beyond doubt. */
static int decided(const struct field *field) {
  const struct finalist *best = NULL;
  double high = INFINITY;
  for (int k = 0; k < field->n; k++) {
    const struct finalist *f = &field->all[k];
    if (!right(f)) continue;
    struct interval own = race_interval(f->sheet.samples, f->sheet.outcome.n_samples);
    if (own.high < high) high = own.high, best = f;
  }
  for (int k = 0; k < field->n; k++) {
    const struct finalist *f = &field->all[k];
    if (f != best && right(f) && race_interval(f->sheet.samples, f->sheet.outcome.n_samples).low <= high) return 0;
  }
  return 1;
}

/* Runs a round without reporting turns: the reader of reports would take a processor from the kernel, which made kernels with two threads on two
 * processors up to 1.8 times slower. The fault handler reports failures, including an aborted race. */
static void run_round(struct bench *b, struct field *field, int round) {
  for (int k = 0; k < field->n; k++) {
    struct finalist *f = &field->all[k];
    if (!right(f)) continue;
    double begin = seconds_now();
    fault_watch(f->index, &f->loaded);
    f->sheet.samples[round] = measure_sample(b, &f->loaded, f->estimate);
    f->sheet.outcome.n_samples = round + 1;
    if (bench_disturbed(b)) measure_last(b, &f->loaded, f->index, &f->sheet); /* while its outputs are there: it leaves the race */
    procstate_end();
    f->sheet.outcome.run_seconds += seconds_now() - begin;
  }
}

/* Runs rounds until enough were calm. */
static void race(struct bench *b, struct noise *c, struct field *field) {
  const struct options *o = b->options;
  double begin = seconds_now(), started = begin;
  for (int quiet_rounds = 0, round = 0; round < o->samples;) {
    run_round(b, field, round++);
    double now = seconds_now(), budget = o->budget_seconds * field->n;
    int over = round == o->samples || now - begin > budget || (round >= o->least_samples && decided(field));
    if (!over && now - started < SEGMENT_SECONDS) continue;
    double seconds = noise_measure(c);
    if (noise_disturbed(c, seconds) && c->patience > 0) {
      noise_wait(c, seconds);
      begin += seconds_now() - started, round = quiet_rounds, over = 0;
    }
    quiet_rounds = round, started = seconds_now();
    if (over) return;
  }
}

int finalists_race(struct bench *b, struct noise *c, const struct tilth_kernel *const *kernels, int32_t n) {
  static struct field field;
  if (bench_reserve(b, &field.scratch, kernels, n, INT64_MAX)) return -1;
  for (int32_t k = 0; k < n;) {
    k = enter_some(b, &field, kernels, k, n);
    if (k < 0) return -1;
    race(b, c, &field);
    leave(b, &field);
  }
  report_calibration(noise_measure(c), c->patience);
  judge_wait(b);
  fault_watch(-1, NULL);
  buffer_close(&field.scratch);
  return 0;
}
