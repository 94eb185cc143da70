/* A user of a package's C interface: reads the inputs from standard input, writes the outputs to standard output. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "tilth.h"

static void *object;

static void *symbol(const char *name) {
  void *found = dlsym(object, name);
  if (!found) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return found;
}
#define CALL(name) ((__typeof__(&name))symbol(#name))

int main(int argc, char **argv) {
  object = dlopen(argv[1], RTLD_NOW);
  if (!object) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  struct tilth_model *m = CALL(tilth_open)(argv[2], atoll(argv[3]));
  if (!m) {
    fprintf(stderr, "%s\n", CALL(tilth_last_error)());
    return 1;
  }
  for (int k = 0; k < CALL(tilth_input_count)(); k++)
    if (fread(CALL(tilth_input)(m, k), CALL(tilth_input_tensor)(k)->bytes, 1, stdin) != 1) return 2;
  CALL(tilth_run)(m);
  if (CALL(tilth_last_error)()[0]) return puts(CALL(tilth_last_error)()), 3;
  for (int k = 0; k < CALL(tilth_output_count)(); k++) fwrite(CALL(tilth_output)(m, k), CALL(tilth_output_tensor)(k)->bytes, 1, stdout);
  CALL(tilth_close)(m);
  return 0;
}
