/* What runs require of their inputs. Those that index an axis must lie within it: kernels clamp indices, so that no input
 * makes them read outside their operands, and the answer for a clamped index would be wrong. */
#include <inttypes.h>
#include <stdio.h>

#include "failure.h"
#include "handle.h"

/* The range of the checked elements of an input. */
struct range {
  const struct tilth_tensor *tensor;
  int64_t limit; /* elements are at least -limit and less than limit */
  int64_t bytes; /* of an element */
};

static int outside(const struct range *r, const char *value) {
  return tilth_fail("input \"%s\" has the index %s, which is outside of %lld..%lld", r->tensor->name, value, (long long)-r->limit, (long long)r->limit - 1);
}

/* The first loop has no exit, so that compilers vectorise it. */
#define SCAN(type, wide, format, above)                                  \
  do {                                                                   \
    const type *v = (const type *)at;                                    \
    const wide low = (wide)-r->limit, high = (wide)r->limit;             \
    int bad = 0;                                                         \
    (void)low;                                                           \
    for (int64_t i = 0; i < n * stride; i += stride)                     \
      bad |= !((above) && (wide)v[i] < high);                            \
    for (int64_t i = 0; bad && i < n * stride; i += stride)              \
      if (!((above) && (wide)v[i] < high)) {                             \
        char text[32];                                                   \
        snprintf(text, sizeof text, format, v[i]);                       \
        return outside(r, text);                                         \
      }                                                                  \
    return 0;                                                            \
  } while (0)

/* Checks n elements. Casts of floating-point numbers to indices cut off their fractions. */
static int scan(const struct range *r, const char *at, int64_t n, int64_t stride) {
  switch (r->tensor->type) {
    case TILTH_TYPE_INT64: SCAN(int64_t, int64_t, "%" PRId64, v[i] >= low);
    case TILTH_TYPE_INT32: SCAN(int32_t, int64_t, "%" PRId32, v[i] >= low);
    case TILTH_TYPE_INT16: SCAN(int16_t, int64_t, "%" PRId16, v[i] >= low);
    case TILTH_TYPE_INT8: SCAN(int8_t, int64_t, "%" PRId8, v[i] >= low);
    case TILTH_TYPE_UINT64: SCAN(uint64_t, uint64_t, "%" PRIu64, 1);
    case TILTH_TYPE_UINT32: SCAN(uint32_t, uint64_t, "%" PRIu32, 1);
    case TILTH_TYPE_UINT16: SCAN(uint16_t, uint64_t, "%" PRIu16, 1);
    case TILTH_TYPE_BOOL:
    case TILTH_TYPE_UINT8: SCAN(uint8_t, uint64_t, "%" PRIu8, 1);
    case TILTH_TYPE_FLOAT32: SCAN(float, double, "%g", v[i] > low - 1);
    case TILTH_TYPE_FLOAT64: SCAN(double, double, "%g", v[i] > low - 1);
  }
  return 0;
}

static int64_t number(const struct tilth_model *m, const struct tilth_form *f) {
  int64_t n = f->plus;
  for (int32_t i = 0; i < tilth_plan.n_extents; i++) n += f->times[i] * *tilth_engine_extent(m->engine, i);
  return n;
}

/* Checks a view, which lies in memory as in the input's largest shape. */
static int scan_view(const struct tilth_model *m, const struct range *r, const struct tilth_strided_axis *axes, int32_t rank, const char *at) {
  if (!rank) return scan(r, at, 1, 1);
  int64_t n = number(m, &axes->count);
  if (rank == 1) return scan(r, at, n, axes->stride);
  for (int64_t i = 0; i < n; i++)
    if (scan_view(m, r, axes + 1, rank - 1, at + i * axes->stride * r->bytes)) return -1;
  return 0;
}

int tilth_check(struct tilth_model *m) {
  for (int32_t k = 0; k < tilth_plan.n_checks; k++) {
    const struct tilth_check *c = &tilth_plan.checks[k];
    struct range r = {&tilth_plan.inputs[c->input], number(m, &c->extent), tilth_plan.inputs[c->input].bytes};
    for (int32_t i = 0; i < r.tensor->rank; i++) r.bytes /= r.tensor->shape[i];
    const char *at = tilth_engine_input(m->engine, c->input);
    if (scan_view(m, &r, c->axes, c->rank, at + number(m, &c->first) * r.bytes)) return -1;
  }
  return 0;
}

void tilth_require(struct tilth_model *m) {
  for (int32_t k = 0; k < tilth_plan.n_required && !*tilth_last_error(); k++) {
    const struct tilth_requirement *r = &tilth_plan.required[k];
    if (!*(const uint8_t *)tilth_engine_result(m->engine, r->output)) tilth_fail("%s", r->why);
  }
}
