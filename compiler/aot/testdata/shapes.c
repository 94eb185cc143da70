/* Reads the inputs from standard input, runs the model, and prints the shape of each output that the run gave, beside
 * that of its tensor. */
#include <inttypes.h>
#include <stdio.h>

#include "object.h"

int main(int argc, char **argv) {
  object = dlopen(argv[1], RTLD_NOW);
  if (!object) return 1;
  struct tilth_model *m = CALL(tilth_open)(argv[2], 0);
  if (!m) return 1;
  for (int k = 0; k < CALL(tilth_input_count)(); k++)
    if (fread(CALL(tilth_input)(m, k), CALL(tilth_input_tensor)(k)->bytes, 1, stdin) != 1) return 2;
  CALL(tilth_run)(m);
  int64_t shape[8];
  for (int k = 0; k < CALL(tilth_output_count)(); k++) {
    const struct tilth_tensor *t = CALL(tilth_output_tensor)(k);
    if (CALL(tilth_output_shape)(m, k, shape)) return 3;
    printf("%s", t->name);
    for (int i = 0; i < t->rank; i++) printf(" %" PRId64 "/%" PRId64, shape[i], t->shape[i]);
    printf("\n");
  }
  int after = CALL(tilth_output_count)();
  int refused = CALL(tilth_output_shape)(m, after, shape) == -1 && CALL(tilth_output_shape)(m, -1, shape) == -1 && !CALL(tilth_output)(m, after) && !CALL(tilth_output_tensor)(after);
  printf("beyond: %s\n", refused ? "refused" : "accepted");
  CALL(tilth_close)(m);
  return argc == 3 ? 0 : 4;
}
