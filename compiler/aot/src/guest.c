/* Runs a package for a process of another architecture, under an emulator: guest OBJECT WEIGHTS OFFSET.
 * First it writes, each as an int64_t, the numbers of inputs, outputs and calls, and the bytes of each input and output.
 * Then it reads the extents and the inputs of a run, and writes the bytes of an error, or 0 and the shape and the bytes of
 * each output, again and again until its input ends. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tilth.h"

static void *object;

static void *symbol(const char *name) {
  void *found = dlsym(object, name);
  if (found) return found;
  fprintf(stderr, "%s\n", dlerror());
  exit(1);
}
#define CALL(name) ((__typeof__(&name))symbol(#name))

static void tell(int64_t n) { fwrite(&n, sizeof n, 1, stdout); }

static void tell_interface(int32_t inputs, int32_t outputs) {
  tell(inputs), tell(outputs), tell(CALL(tilth_call_count)());
  for (int32_t k = 0; k < inputs; k++) tell(CALL(tilth_input_tensor)(k)->bytes);
  for (int32_t k = 0; k < outputs; k++) tell(CALL(tilth_output_tensor)(k)->bytes);
  fflush(stdout);
}

/* 0 at the end of the input, and where an extent is out of bounds. */
static int read_extents(struct tilth_model *m) {
  int64_t n;
  for (int32_t k = 0; k < CALL(tilth_extent_count)(); k++)
    if (fread(&n, sizeof n, 1, stdin) != 1 || CALL(tilth_set_extent)(m, k, n)) return 0;
  return 1;
}

static int read_inputs(struct tilth_model *m, int32_t inputs) {
  for (int32_t k = 0; k < inputs; k++) {
    size_t bytes = (size_t)CALL(tilth_input_tensor)(k)->bytes;
    if (bytes > 0 && fread(CALL(tilth_input)(m, k), bytes, 1, stdin) != 1) return 0;
  }
  return 1;
}

static void write_outputs(struct tilth_model *m, int32_t outputs) {
  for (int32_t k = 0; k < outputs; k++) {
    const struct tilth_tensor *t = CALL(tilth_output_tensor)(k);
    int64_t shape[t->rank + 1];
    CALL(tilth_output_shape)(m, k, shape);
    fwrite(shape, sizeof *shape, (size_t)t->rank, stdout);
    fwrite(CALL(tilth_output)(m, k), 1, (size_t)t->bytes, stdout);
  }
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
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
  int32_t inputs = CALL(tilth_input_count)(), outputs = CALL(tilth_output_count)();
  tell_interface(inputs, outputs);
  /* A byte begins each run, so that a model without inputs runs when it is asked to. */
  while (getchar() != EOF && read_extents(m) && read_inputs(m, inputs)) {
    CALL(tilth_run)(m);
    const char *error = CALL(tilth_last_error)();
    tell((int64_t)strlen(error)), fputs(error, stdout);
    if (!*error) write_outputs(m, outputs);
    fflush(stdout);
  }
  CALL(tilth_close)(m);
  return 0;
}
