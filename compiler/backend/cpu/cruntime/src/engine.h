/* The device-specific part of a package, which runs the model. Handles serialise calls. Failures are reported through
 * tilth_fail. */
#ifndef TILTH_ENGINE_H
#define TILTH_ENGINE_H
#include "model.h"

struct tilth_engine;

/* NULL on failure. The options are checked, and those that are not known are zero. */
TILTH_HIDDEN struct tilth_engine *tilth_engine_open(const char *weights, int64_t offset, const struct tilth_options *options);
TILTH_HIDDEN void tilth_engine_close(struct tilth_engine *engine);

/* How many threads run the model, the caller's included. */
TILTH_HIDDEN int32_t tilth_engine_threads(const struct tilth_engine *engine);

/* Where an input is written, of those that the plan has. */
TILTH_HIDDEN void *tilth_engine_input(struct tilth_engine *engine, int32_t index);

/* Where the last run left one of the plan's outputs, counts included. */
TILTH_HIDDEN const void *tilth_engine_result(const struct tilth_engine *engine, int32_t index);

/* The number of steps of an extent, of those that the plan has. */
TILTH_HIDDEN int64_t *tilth_engine_extent(const struct tilth_engine *engine, int32_t index);

TILTH_HIDDEN void tilth_engine_run(struct tilth_engine *engine);
TILTH_HIDDEN void tilth_engine_profile(struct tilth_engine *engine, double *seconds);
TILTH_HIDDEN void tilth_engine_peak(struct tilth_engine *engine, double *flops, double *bytes);
TILTH_HIDDEN double tilth_engine_integer_peak(struct tilth_engine *engine);

/* The functions that only packages for GPUs have; those define it. */
extern TILTH_HIDDEN const struct tilth_device_api tilth_device_functions __attribute__((weak));

#endif
