/* What the generated part of a package provides to the part that all packages share. */
#ifndef TILTH_MODEL_H
#define TILTH_MODEL_H
#include "tilth.h"
#include "tilth_kernel.h"

#define TILTH_HIDDEN __attribute__((visibility("hidden")))

/* A place in memory: in the arena, or in the weights. */
struct tilth_place {
  int32_t in_weights;
  int64_t offset;
};

struct tilth_plan {
  int32_t threads;
  int64_t arena_bytes, weights_bytes;
  int32_t n_inputs, n_outputs, n_calls;
  const struct tilth_tensor *inputs, *outputs;
  const struct tilth_place *input_places, *output_places;
  const char *const *call_names;
  /* Runs all calls in order. When seconds is not NULL, stores there how long each took. */
  void (*run)(const struct tilth_runtime *rt, char *arena, char *weights, double *seconds);
};

extern TILTH_HIDDEN const struct tilth_plan tilth_plan;

/* The time, in seconds since an arbitrary moment. */
TILTH_HIDDEN double tilth_now(void);

#endif
