/* Opening models, and holding them while something runs. */
#define _GNU_SOURCE
#include "handle.h"

#include <stdlib.h>
#include <string.h>

#include "failure.h"
#include "vectors.h"

enum { MOST_OPTION_BYTES = 4096 };

/* Options of an earlier version are shorter, those of a later one longer: what is not known must be zero. */
static int read_options(const struct tilth_options *given, struct tilth_options *o) {
  *o = (struct tilth_options){0};
  if (!given) return 0;
  int64_t size = given->size, known = size < (int64_t)sizeof *o ? size : (int64_t)sizeof *o;
  if (size < (int64_t)sizeof given->size || size > MOST_OPTION_BYTES)
    return tilth_fail("options of %lld bytes: size must be sizeof(struct tilth_options)", (long long)size);
  for (int64_t k = known; k < size; k++)
    if (((const char *)given)[k]) return tilth_fail("the options have some that this package does not know: compile the model again");
  memcpy(o, given, (size_t)known);
  if (o->threads < 0) return tilth_fail("%d threads: want at least 1, or 0 for as many as the model was compiled for", o->threads);
  if (o->n_cpus < 0 || (o->n_cpus > 0 && !o->cpus)) return tilth_fail("n_cpus is %d: want the length of the list cpus", o->n_cpus);
  return 0;
}

static int make_mutex(pthread_mutex_t *mutex) {
  pthread_mutexattr_t kind;
  if (pthread_mutexattr_init(&kind)) return -1;
  int bad = pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE) || pthread_mutex_init(mutex, &kind);
  pthread_mutexattr_destroy(&kind);
  return bad ? -1 : 0;
}

TILTH_API struct tilth_model *tilth_open_with(const char *weights, int64_t offset, const struct tilth_options *options) {
  struct tilth_options o;
  const char *unfit = tilth_vectors_unfit();
  tilth_fail(NULL);
  if (!unfit && read_options(options, &o)) return NULL;
  if (!unfit && tilth_plan.libraries) unfit = tilth_plan.libraries();
  if (unfit) {
    tilth_fail("%s", unfit);
    return NULL;
  }
  struct tilth_model *m = calloc(1, sizeof *m);
  if (!m || make_mutex(&m->held)) {
    free(m);
    tilth_fail("out of memory");
    return NULL;
  }
  m->engine = tilth_engine_open(weights, offset, &o);
  if (m->engine) return m;
  tilth_close(m);
  return NULL;
}

TILTH_API struct tilth_model *tilth_open(const char *weights, int64_t offset) { return tilth_open_with(weights, offset, NULL); }

TILTH_API void tilth_close(struct tilth_model *m) {
  if (!m) return;
  if (m->engine) tilth_engine_close(m->engine);
  pthread_mutex_destroy(&m->held);
  free(m);
}

TILTH_API void tilth_lock(struct tilth_model *m) { pthread_mutex_lock(&m->held); }

TILTH_API void tilth_unlock(struct tilth_model *m) { pthread_mutex_unlock(&m->held); }

TILTH_API int32_t tilth_threads(const struct tilth_model *m) { return tilth_engine_threads(m->engine); }

TILTH_API void *tilth_input(struct tilth_model *m, int32_t k) {
  return k >= 0 && k < tilth_plan.n_inputs ? tilth_engine_input(m->engine, k) : NULL;
}

TILTH_API const void *tilth_output(const struct tilth_model *m, int32_t k) {
  return k >= 0 && k < tilth_output_count() ? tilth_engine_result(m->engine, k) : NULL;
}

TILTH_API void tilth_run(struct tilth_model *m) {
  tilth_lock(m);
  tilth_fail(NULL);
  if (!tilth_check(m)) tilth_engine_run(m->engine), tilth_require(m);
  tilth_unlock(m);
}

TILTH_API void tilth_profile(struct tilth_model *m, double *seconds) {
  tilth_lock(m);
  tilth_fail(NULL);
  for (int32_t k = 0; k < tilth_plan.n_calls; k++) seconds[k] = -1;
  if (!tilth_check(m)) tilth_engine_profile(m->engine, seconds), tilth_require(m);
  tilth_unlock(m);
}

TILTH_API void tilth_peak(struct tilth_model *m, double *flops, double *bytes) {
  tilth_lock(m);
  tilth_engine_peak(m->engine, flops, bytes);
  tilth_unlock(m);
}

TILTH_API double tilth_integer_peak(struct tilth_model *m) {
  tilth_lock(m);
  double operations = tilth_engine_integer_peak(m->engine);
  tilth_unlock(m);
  return operations;
}
