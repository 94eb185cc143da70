/* y[i] = sum over k of x[i][k] * w[k]: the reference of the candidates in candidates.c. */
#include "tilth_kernel.h"

enum { ROWS = 1000, INNER = 100 };

static void run(const struct tilth_runtime *rt, void *const *args, void *const *prepared, void *workspace) {
  const float *x = args[0], *w = args[1];
  float *y = args[2];
  for (int i = 0; i < ROWS; i++) {
    float sum = 0;
    for (int k = 0; k < INNER; k++) sum += x[i * INNER + k] * w[k];
    y[i] = sum;
  }
}

static const struct tilth_arg args[] = {
    {"x", ROWS * INNER, 4 * ROWS * INNER, TILTH_FLOAT32, TILTH_INPUT},
    {"w", INNER, 4 * INNER, TILTH_FLOAT32, TILTH_CONSTANT},
    {"y", ROWS, 4 * ROWS, TILTH_FLOAT32, TILTH_OUTPUT, 1e-5},
};
static const struct tilth_kernel kernels[] = {{"reference", 0, 0, run, 0, 0}};
const struct tilth_module tilth_module = {TILTH_ABI, 3, args, 1, kernels};
