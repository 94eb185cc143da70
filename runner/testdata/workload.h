/* The workload of reference.c: y = x w, and a kernel that computes it. */
#include "tilth_kernel.h"

enum { ROWS = 1000, INNER = 100 };
#define KERNEL(name) static void name(const struct tilth_runtime *rt, void *const *args, void *const *prepared, void *workspace)
#define Y ((volatile float *)args[2])

struct closure {
  const float *x, *w;
  float *y;
};

static void rows(void *closure, int64_t begin, int64_t end, int32_t worker) {
  struct closure *c = closure;
  for (int64_t i = begin; i < end; i++) {
    float sum = 0;
    for (int k = 0; k < INNER; k++) sum += c->x[i * INNER + k] * c->w[k];
    c->y[i] = sum;
  }
}

KERNEL(good) {
  struct closure c = {args[0], prepared[0], args[2]};
  rt->parallel(rt, rows, &c, ROWS);
}

static const struct tilth_arg args[] = {
    {"x", ROWS * INNER, 4 * ROWS * INNER, TILTH_FLOAT32, TILTH_INPUT},
    {"w", INNER, 4 * INNER, TILTH_FLOAT32, TILTH_CONSTANT},
    {"y", ROWS, 4 * ROWS, TILTH_FLOAT32, TILTH_OUTPUT, 1e-5},
};
