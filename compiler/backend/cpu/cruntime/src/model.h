/* What the generated part of a package provides to the part that all packages share, and that to the other. */
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

/* An output with an extent that depends on data: on an axis it has as many elements as a count says. */
struct tilth_open_output {
  int32_t output, axis;
  int32_t count; /* an index of the plan's outputs */
};

/* An extent that each execution chooses, a multiple of a step. */
struct tilth_extent {
  const char *name;
  int64_t least, most, step;
  int64_t offset; /* where its number of steps lies in the arena, an int64_t */
};

/* An input or output that has, on an axis, times * steps of an extent + plus elements, or the sum of several such. */
struct tilth_varying {
  int32_t tensor, axis, extent;
  int64_t times, plus;
};

/* A number that depends on the extents: plus and the sum of times * steps. */
struct tilth_form {
  int64_t plus;
  const int64_t *times; /* one for each extent of the plan */
};

/* An axis of a strided view. */
struct tilth_strided_axis {
  struct tilth_form count;
  int64_t stride;
};

/* A condition on an input that indexes an axis of extent elements: those of a view, from element first on, are at least
 * -extent and less than extent. */
struct tilth_check {
  int32_t input, rank;
  struct tilth_form first, extent;
  const struct tilth_strided_axis *axes;
};

/* An output of the plan, a bool, that must be true after a run, and the message if it is not. */
struct tilth_requirement {
  int32_t output;
  const char *why;
};

struct tilth_plan {
  int32_t threads;
  int64_t arena_bytes, weights_bytes;
  /* The last n_counts of the outputs are counts and requirements, which the model's caller does not see. */
  int32_t n_inputs, n_outputs, n_counts, n_calls;
  const struct tilth_tensor *inputs, *outputs;
  const struct tilth_place *input_places, *output_places;
  int32_t n_open;
  const struct tilth_open_output *open;
  int32_t n_extents, n_varying_inputs, n_varying_outputs;
  const struct tilth_extent *extents;
  const struct tilth_varying *varying_inputs, *varying_outputs;
  int32_t n_checks;
  const struct tilth_check *checks;
  int32_t n_required;
  const struct tilth_requirement *required;
  /* The extents of a decoder, if the model is one: how many positions came before, and how many a run has. */
  int32_t decodes, past, step;
  const char *const *call_names;
  /* Returns why the libraries that kernels call differ from the measured ones; NULL if kernels call no library. */
  const char *(*libraries)(void);
  /* Runs all calls in order. When seconds is not NULL, stores there how long each took, and -1 for those that are not needed. */
  void (*run)(const struct tilth_runtime *rt, char *arena, char *weights, double *seconds);
};

extern TILTH_HIDDEN const struct tilth_plan tilth_plan;

/* The time, in seconds since an arbitrary moment. */
TILTH_HIDDEN double tilth_now(void);

#endif
