#include "examine.h"

#include <string.h>

#include "fault.h"
#include "judge.h"
#include "measure.h"

/* Examines until the judge has seen enough. Returns 1 if the judge wants a kernel before. */
static int examine(struct bench *b, const struct loaded *l) {
  for (;;) {
    struct judge_word w = judge_wait(b);
    if (w.op == JUDGE_ENOUGH) return 0;
    if (w.op == JUDGE_LOAD && !l) return 1;
    if (judge_examine(b, w.op == JUDGE_FILL ? NULL : l, &w)) return -1;
    report_done();
  }
}

int examine_rehearse(struct bench *b) { return examine(b, NULL); }

int examine_reference(struct bench *b, const struct tilth_kernel *kernel) {
  static struct loaded l;
  static struct buffer scratch;
  if (bench_load(b, &l, kernel, &scratch)) return -1;
  bench_poison(b);
  return examine(b, &l);
}

int examine_candidate(struct bench *b, const struct tilth_kernel *kernel, int32_t index) {
  static struct loaded l;
  static struct buffer scratch;
  static struct sheet s;
  fault_watch(index, &l);
  report_start(index);
  if (bench_load(b, &l, kernel, &scratch)) return -1;
  measure_first(b, &l, index, &s);
  if (strcmp(s.outcome.status, "ok")) {
    report_outcome(index, kernel->id, &s.outcome);
    return 0;
  }
  if (examine(b, &l)) return -1;
  fault_watch(-1, NULL);
  bench_unload(&l);
  buffer_close(&scratch);
  return 0;
}
