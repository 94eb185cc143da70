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

API int tilth_output_shape(const struct tilth_model *m, int32_t k, int64_t *shape) {
  const struct tilth_tensor *t = tilth_output_tensor(k);
  if (!t) return -1;
  memcpy(shape, t->shape, sizeof *shape * (size_t)t->rank);
  for (int32_t i = 0; i < tilth_plan.n_open; i++) {
    const struct tilth_open_output *o = &tilth_plan.open[i];
    if (o->output != k) continue;
    int64_t count = *(const int64_t *)tilth_result(m, o->count);
    int64_t most = t->shape[o->axis];
    shape[o->axis] = count < 0 ? 0 : count > most ? most : count;
  }
  return 0;
}

API const char *tilth_call_name(int32_t k) { return k >= 0 && k < tilth_plan.n_calls ? tilth_plan.call_names[k] : NULL; }
