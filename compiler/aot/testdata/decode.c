/* Reads six positions of eight numbers from standard input, runs a decoder on the first three, the next one, and the last
 * two, writes its first output after each run to standard output, and asks for more positions than there is room for. */
#include <stdio.h>

#include "object.h"

#define WIDTH (8 * sizeof(float))

static int step(struct tilth_model *m, int64_t n, int (*run)(struct tilth_model *, int64_t)) {
  if (fread(CALL(tilth_input)(m, 0), WIDTH, n, stdin) != (size_t)n || run(m, n)) return 1;
  return fwrite(CALL(tilth_output)(m, 0), WIDTH, n, stdout) != (size_t)n;
}

int main(int argc, char **argv) {
  if (argc != 3) return 1;
  object = dlopen(argv[1], RTLD_NOW);
  if (!object) return 1;
  struct tilth_model *m = CALL(tilth_open)(argv[2], 0);
  if (!m) return 1;
  if (step(m, 3, CALL(tilth_prefill)) || step(m, 1, CALL(tilth_decode)) || step(m, 2, CALL(tilth_decode))) return 2;
  if (CALL(tilth_prefill)(m, 7) != -1) return 3;
  printf("%s\n", CALL(tilth_last_error)());
  while (CALL(tilth_decode)(m, 1) == 0)
    ;
  printf("%s\n", CALL(tilth_last_error)());
  CALL(tilth_close)(m);
  return 0;
}
