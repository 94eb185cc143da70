/* Descriptions of a package that need no open model, and the last error. */
#include <stdarg.h>
#include <stdio.h>

#include "failure.h"
#include "handle.h"

static _Thread_local char last_error[512];

int tilth_fail(const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (format) vsnprintf(last_error, sizeof last_error, format, args);
  else last_error[0] = 0;
  va_end(args);
  return -1;
}

TILTH_API const char *tilth_last_error(void) { return last_error; }

TILTH_API int32_t tilth_input_count(void) { return tilth_plan.n_inputs; }
TILTH_API int32_t tilth_output_count(void) { return tilth_plan.n_outputs - tilth_plan.n_counts; }
TILTH_API int32_t tilth_call_count(void) { return tilth_plan.n_calls; }

TILTH_API const struct tilth_tensor *tilth_input_tensor(int32_t k) {
  return k >= 0 && k < tilth_plan.n_inputs ? &tilth_plan.inputs[k] : NULL;
}

TILTH_API const struct tilth_tensor *tilth_output_tensor(int32_t k) {
  return k >= 0 && k < tilth_output_count() ? &tilth_plan.outputs[k] : NULL;
}

TILTH_API const char *tilth_call_name(int32_t k) { return k >= 0 && k < tilth_plan.n_calls ? tilth_plan.call_names[k] : NULL; }

TILTH_API const struct tilth_api *tilth_api(void) {
  static const struct tilth_api functions = {
      .size = sizeof functions, .open = tilth_open, .open_with = tilth_open_with, .close = tilth_close, .lock = tilth_lock, .unlock = tilth_unlock,
      .threads = tilth_threads, .last_error = tilth_last_error, .input_count = tilth_input_count, .output_count = tilth_output_count,
      .input_tensor = tilth_input_tensor, .output_tensor = tilth_output_tensor, .input = tilth_input, .output = tilth_output,
      .extent_count = tilth_extent_count, .extent_name = tilth_extent_name, .extent_bounds = tilth_extent_bounds, .set_extent = tilth_set_extent,
      .input_shape = tilth_input_shape, .output_shape = tilth_output_shape, .run = tilth_run, .prefill = tilth_prefill, .decode = tilth_decode,
      .profile = tilth_profile, .call_count = tilth_call_count, .call_name = tilth_call_name, .peak = tilth_peak,
      .integer_peak = tilth_integer_peak, .device = &tilth_device_functions,
  };
  return &functions;
}
