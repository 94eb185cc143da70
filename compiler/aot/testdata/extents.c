/* Chooses each extent as the command line says, fills the inputs with their number, runs the model, and prints the extents, the shapes of
 * inputs and outputs, and the first element of each output. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "object.h"

static void print(const struct tilth_tensor *t, const int64_t *shape) {
  printf("%s", t->name);
  for (int i = 0; i < t->rank; i++) printf(" %" PRId64 "/%" PRId64, shape[i], t->shape[i]);
}

int main(int argc, char **argv) {
  object = dlopen(argv[1], RTLD_NOW);
  if (!object) return 1;
  struct tilth_model *m = CALL(tilth_open)(argv[2], 0);
  if (!m) return 1;
  int extents = CALL(tilth_extent_count)();
  int64_t least, most, shape[8];
  if (extents != argc - 3) return 2;
  for (int k = 0; k < extents; k++) {
    if (CALL(tilth_extent_bounds)(k, &least, &most)) return 3;
    int beyond = CALL(tilth_set_extent)(m, k, most + 1) || CALL(tilth_set_extent)(m, k, least - 1);
    if (!beyond || CALL(tilth_set_extent)(m, k, atoll(argv[3 + k]))) return 3;
    printf("%s %" PRId64 "..%" PRId64 "\n", CALL(tilth_extent_name)(k), least, most);
  }
  for (int k = 0; k < CALL(tilth_input_count)(); k++) {
    const struct tilth_tensor *t = CALL(tilth_input_tensor)(k);
    float *x = CALL(tilth_input)(m, k);
    for (int64_t i = 0; i < t->bytes / 4; i++) x[i] = (float)(k + 1);
    if (CALL(tilth_input_shape)(m, k, shape)) return 3;
    print(t, shape);
    printf("\n");
  }
  CALL(tilth_run)(m);
  for (int k = 0; k < CALL(tilth_output_count)(); k++) {
    if (CALL(tilth_output_shape)(m, k, shape)) return 3;
    print(CALL(tilth_output_tensor)(k), shape);
    printf(" %g\n", *(const float *)CALL(tilth_output)(m, k));
  }
  int refused = CALL(tilth_extent_bounds)(extents, &least, &most) == -1 && CALL(tilth_set_extent)(m, -1, 1) == -1 && !CALL(tilth_extent_name)(extents) && CALL(tilth_input_shape)(m, -1, shape) == -1;
  printf("beyond: %s\n", refused ? "refused" : "accepted");
  CALL(tilth_close)(m);
  return 0;
}
