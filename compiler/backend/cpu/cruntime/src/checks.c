/* What runs require of their inputs. Those that index an axis must lie within it: kernels clamp indices, so that no input
 * makes them read outside their operands, and the answer for a clamped index would be wrong. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "failure.h"
#include "handle.h"

/* The elements of an input that a check concerns. */
struct range {
  const struct tilth_check *check;
  const struct tilth_tensor *tensor;
  int64_t limit; /* elements are at least -limit and less than limit */
};

static int outside(const struct range *r, const char *value) {
  return tilth_fail("input \"%s\" has the index %s, which is outside of %lld..%lld", r->tensor->name, value, (long long)-r->limit, (long long)r->limit - 1);
}

/* The first loop has no exit, so that compilers vectorise it. */
#define SCAN(type, wide, format, above)                                               \
  do {                                                                                \
    const type *v = (const type *)at;                                                 \
    const wide low = (wide)-r->limit, high = (wide)r->limit;                          \
    int bad = 0;                                                                      \
    (void)low;                                                                        \
    for (int64_t i = first; i < n; i += step) bad |= !((above) && (wide)v[i] < high); \
    for (int64_t i = first; bad && i < n; i += step)                                  \
      if (!((above) && (wide)v[i] < high)) {                                          \
        char text[32];                                                                \
        snprintf(text, sizeof text, format, v[i]);                                    \
        return outside(r, text);                                                      \
      }                                                                               \
    return 0;                                                                         \
  } while (0)

/* Checks n consecutive elements. Casts of floating-point numbers to indices cut off their fractions. */
static int scan(const struct range *r, const char *at, int64_t n) {
  const int64_t first = r->check->first, step = r->check->step;
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

/* Checks the part of an input that an execution has, from an axis on; the input lies in memory as in its largest shape. */
static int scan_part(const struct range *r, const int64_t *shape, int32_t axis, const char *at) {
  const struct tilth_tensor *t = r->tensor;
  if (axis == t->rank) return scan(r, at, 1);
  if (!memcmp(shape + axis + 1, t->shape + axis + 1, sizeof *shape * (size_t)(t->rank - axis - 1))) {
    int64_t n = shape[axis];
    for (int32_t k = axis + 1; k < t->rank; k++) n *= shape[k];
    return scan(r, at, n);
  }
  int64_t bytes = t->bytes;
  for (int32_t k = 0; k <= axis; k++) bytes /= t->shape[k];
  for (int64_t i = 0; i < shape[axis]; i++)
    if (scan_part(r, shape, axis + 1, at + i * bytes)) return -1;
  return 0;
}

int tilth_check(struct tilth_model *m) {
  for (int32_t k = 0; k < tilth_plan.n_checks; k++) {
    const struct tilth_check *c = &tilth_plan.checks[k];
    struct range r = {c, &tilth_plan.inputs[c->input], c->plus};
    for (int32_t i = 0; i < tilth_plan.n_extents; i++) r.limit += c->times[i] * *tilth_engine_extent(m->engine, i);
    int64_t shape[r.tensor->rank + 1];
    tilth_input_shape(m, c->input, shape);
    if (scan_part(&r, shape, 0, tilth_engine_input(m->engine, c->input))) return -1;
  }
  return 0;
}

void tilth_require(struct tilth_model *m) {
  for (int32_t k = 0; k < tilth_plan.n_required && !*tilth_last_error(); k++) {
    const struct tilth_requirement *r = &tilth_plan.required[k];
    if (!*(const uint8_t *)tilth_engine_result(m->engine, r->output)) tilth_fail("%s", r->why);
  }
}
