/* What a package tells of itself without being opened, and of what went wrong. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "failure.h"
#include "model.h"

#define API __attribute__((visibility("default")))

static _Thread_local char last_error[512];

int tilth_fail(const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (format) vsnprintf(last_error, sizeof last_error, format, args);
  else last_error[0] = 0;
  va_end(args);
  return -1;
}

API const char *tilth_last_error(void) { return last_error; }

API int32_t tilth_input_count(void) { return tilth_plan.n_inputs; }
API int32_t tilth_output_count(void) { return tilth_plan.n_outputs - tilth_plan.n_counts; }
API int32_t tilth_call_count(void) { return tilth_plan.n_calls; }

API const struct tilth_tensor *tilth_input_tensor(int32_t k) {
  return k >= 0 && k < tilth_plan.n_inputs ? &tilth_plan.inputs[k] : NULL;
}

API const struct tilth_tensor *tilth_output_tensor(int32_t k) {
  return k >= 0 && k < tilth_output_count() ? &tilth_plan.outputs[k] : NULL;
}

API const void *tilth_output(const struct tilth_model *m, int32_t k) { return k >= 0 && k < tilth_output_count() ? tilth_result(m, k) : NULL; }

API int32_t tilth_extent_count(void) { return tilth_plan.n_extents; }

API const char *tilth_extent_name(int32_t k) { return k >= 0 && k < tilth_plan.n_extents ? tilth_plan.extents[k].name : NULL; }

API int tilth_extent_bounds(int32_t k, int64_t *least, int64_t *most) {
  if (k < 0 || k >= tilth_plan.n_extents) return -1;
  *least = tilth_plan.extents[k].least, *most = tilth_plan.extents[k].most;
  return 0;
}

API int tilth_set_extent(struct tilth_model *m, int32_t k, int64_t n) {
  int64_t least, most;
  if (tilth_extent_bounds(k, &least, &most) || n < least || n > most) return -1;
  *tilth_extent(m, k) = n;
  return 0;
}

/* Puts the extents of an execution into the shape of one of its inputs or outputs. */
static void vary(const struct tilth_model *m, const struct tilth_varying *list, int32_t n, int32_t tensor, int64_t *shape) {
  for (int32_t i = 0; i < n; i++)
    if (list[i].tensor == tensor) shape[list[i].axis] = 0;
  for (int32_t i = 0; i < n; i++)
    if (list[i].tensor == tensor) shape[list[i].axis] += list[i].times * *tilth_extent(m, list[i].extent) + list[i].plus;
}

API int tilth_input_shape(const struct tilth_model *m, int32_t k, int64_t *shape) {
  const struct tilth_tensor *t = tilth_input_tensor(k);
  if (!t) return -1;
  memcpy(shape, t->shape, sizeof *shape * (size_t)t->rank);
  vary(m, tilth_plan.varying_inputs, tilth_plan.n_varying_inputs, k, shape);
  return 0;
}

API int tilth_output_shape(const struct tilth_model *m, int32_t k, int64_t *shape) {
  const struct tilth_tensor *t = tilth_output_tensor(k);
  if (!t) return -1;
  memcpy(shape, t->shape, sizeof *shape * (size_t)t->rank);
  vary(m, tilth_plan.varying_outputs, tilth_plan.n_varying_outputs, k, shape);
  for (int32_t i = 0; i < tilth_plan.n_open; i++) {
    const struct tilth_open_output *o = &tilth_plan.open[i];
    if (o->output != k) continue;
    int64_t count = *(const int64_t *)tilth_result(m, o->count);
    int64_t most = t->shape[o->axis];
    shape[o->axis] = count < 0 ? 0 : count > most ? most : count;
  }
  return 0;
}

static int go_on(struct tilth_model *m, int64_t past, int64_t step) {
  tilth_fail(NULL);
  if (!tilth_plan.decodes) return tilth_fail("no output of the model continues an input");
  const struct tilth_extent *p = &tilth_plan.extents[tilth_plan.past], *s = &tilth_plan.extents[tilth_plan.step];
  if (step < s->least || step > s->most)
    return tilth_fail("%lld positions: the model was compiled for %lld to %lld at a time", (long long)step, (long long)s->least, (long long)s->most);
  if (past < p->least || past > p->most)
    return tilth_fail("%lld positions before: the model was compiled for %lld to %lld", (long long)past, (long long)p->least, (long long)p->most);
  *tilth_extent(m, tilth_plan.past) = past, *tilth_extent(m, tilth_plan.step) = step;
  tilth_run(m);
  return 0;
}

API int tilth_prefill(struct tilth_model *m, int64_t step) { return go_on(m, 0, step); }

API int tilth_decode(struct tilth_model *m, int64_t step) {
  if (!tilth_plan.decodes) return go_on(m, 0, step);
  return go_on(m, *tilth_extent(m, tilth_plan.past) + *tilth_extent(m, tilth_plan.step), step);
}

API const char *tilth_call_name(int32_t k) { return k >= 0 && k < tilth_plan.n_calls ? tilth_plan.call_names[k] : NULL; }
