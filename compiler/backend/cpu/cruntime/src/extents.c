/* Extents that executions choose, or that data decide, and decoders, which go on with them. */
#include <string.h>

#include "failure.h"
#include "handle.h"

TILTH_API int32_t tilth_extent_count(void) { return tilth_plan.n_extents; }

TILTH_API const char *tilth_extent_name(int32_t k) { return k >= 0 && k < tilth_plan.n_extents ? tilth_plan.extents[k].name : NULL; }

TILTH_API int tilth_extent_bounds(int32_t k, int64_t *least, int64_t *most) {
  if (k < 0 || k >= tilth_plan.n_extents) return -1;
  *least = tilth_plan.extents[k].least, *most = tilth_plan.extents[k].most;
  return 0;
}

TILTH_API int tilth_set_extent(struct tilth_model *m, int32_t k, int64_t n) {
  int64_t least, most;
  if (tilth_extent_bounds(k, &least, &most) || n < least || n > most || n % tilth_plan.extents[k].step) return -1;
  tilth_lock(m);
  *tilth_engine_extent(m->engine, k) = n / tilth_plan.extents[k].step;
  tilth_unlock(m);
  return 0;
}

/* Shapes are read, which changes nothing of a model but who holds it. */
static struct tilth_model *hold(const struct tilth_model *m) {
  tilth_lock((struct tilth_model *)m);
  return (struct tilth_model *)m;
}

/* Puts the extents of an execution into the shape of one of its inputs or outputs. */
static void vary(const struct tilth_model *m, const struct tilth_varying *list, int32_t n, int32_t tensor, int64_t *shape) {
  for (int32_t i = 0; i < n; i++)
    if (list[i].tensor == tensor) shape[list[i].axis] = 0;
  for (int32_t i = 0; i < n; i++)
    if (list[i].tensor == tensor) shape[list[i].axis] += list[i].times * *tilth_engine_extent(m->engine, list[i].extent) + list[i].plus;
}

TILTH_API int tilth_input_shape(const struct tilth_model *model, int32_t k, int64_t *shape) {
  const struct tilth_tensor *t = tilth_input_tensor(k);
  if (!t) return -1;
  struct tilth_model *m = hold(model);
  memcpy(shape, t->shape, sizeof *shape * (size_t)t->rank);
  vary(m, tilth_plan.varying_inputs, tilth_plan.n_varying_inputs, k, shape);
  tilth_unlock(m);
  return 0;
}

/* Puts the extents that data decided into the shape of an output. */
static void count(const struct tilth_model *m, const struct tilth_tensor *t, int32_t output, int64_t *shape) {
  for (int32_t i = 0; i < tilth_plan.n_open; i++) {
    const struct tilth_open_output *o = &tilth_plan.open[i];
    if (o->output != output) continue;
    int64_t counted = *(const int64_t *)tilth_engine_result(m->engine, o->count);
    int64_t most = t->shape[o->axis];
    shape[o->axis] = counted < 0 ? 0 : counted > most ? most : counted;
  }
}

TILTH_API int tilth_output_shape(const struct tilth_model *model, int32_t k, int64_t *shape) {
  const struct tilth_tensor *t = tilth_output_tensor(k);
  if (!t) return -1;
  struct tilth_model *m = hold(model);
  memcpy(shape, t->shape, sizeof *shape * (size_t)t->rank);
  vary(m, tilth_plan.varying_outputs, tilth_plan.n_varying_outputs, k, shape);
  count(m, t, k, shape);
  tilth_unlock(m);
  return 0;
}

static int go_on(struct tilth_model *m, int64_t past, int64_t step) {
  const struct tilth_extent *p = &tilth_plan.extents[tilth_plan.past], *s = &tilth_plan.extents[tilth_plan.step];
  if (step < s->least || step > s->most)
    return tilth_fail("%lld positions: the model was compiled for %lld to %lld at a time", (long long)step, (long long)s->least, (long long)s->most);
  if (past < p->least || past > p->most)
    return tilth_fail("%lld positions before: the model was compiled for %lld to %lld", (long long)past, (long long)p->least, (long long)p->most);
  *tilth_engine_extent(m->engine, tilth_plan.past) = past, *tilth_engine_extent(m->engine, tilth_plan.step) = step;
  tilth_run(m);
  return *tilth_last_error() ? -1 : 0;
}

static int decodes(void) {
  tilth_fail(NULL);
  if (!tilth_plan.decodes) tilth_fail("no output of the model continues an input");
  return tilth_plan.decodes;
}

TILTH_API int tilth_prefill(struct tilth_model *m, int64_t step) {
  if (!decodes()) return -1;
  tilth_lock(m);
  int bad = go_on(m, 0, step);
  tilth_unlock(m);
  return bad;
}

TILTH_API int tilth_decode(struct tilth_model *m, int64_t step) {
  if (!decodes()) return -1;
  tilth_lock(m);
  int bad = go_on(m, *tilth_engine_extent(m->engine, tilth_plan.past) + *tilth_engine_extent(m->engine, tilth_plan.step), step);
  tilth_unlock(m);
  return bad;
}
