/* Opens a package on two cards of a process: on the second because this thread uses it, and on the first because the
 * environment says so; and runs both. The first is closed, which gives up the card, and opened once more. Arguments: the
 * driver's library, the package's object, the weights. It reads inputs once, and writes the outputs of all runs. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "tilth.h"

static void *object;
#define CALL(name) ((__typeof__(&name))dlsym(object, #name))

static struct driver driver;

static struct tilth_model *opened(const char *weights) {
  struct tilth_model *m = CALL(tilth_open)(weights, 0);
  if (!m) exit((fprintf(stderr, "%s\n", CALL(tilth_last_error)()), 1));
  return m;
}

static void runs(struct tilth_model *m, char *const *inputs) {
  for (int k = 0; k < CALL(tilth_input_count)(); k++) memcpy(CALL(tilth_input)(m, k), inputs[k], CALL(tilth_input_tensor)(k)->bytes);
  CALL(tilth_run)(m);
  if (CALL(tilth_last_error)()[0]) exit((fprintf(stderr, "%s\n", CALL(tilth_last_error)()), 1));
  for (int k = 0; k < CALL(tilth_output_count)(); k++) fwrite(CALL(tilth_output)(m, k), CALL(tilth_output_tensor)(k)->bytes, 1, stdout);
}

/* Whether anybody in this process uses the first card. */
static int is_used(const char *library) {
  CUresult (*state)(CUdevice device, unsigned *flags, int *active) = dlsym(dlopen(library, RTLD_NOW), "cuDevicePrimaryCtxGetState");
  unsigned flags;
  int active = 0;
  if (!state || state(0, &flags, &active)) exit(2);
  return active;
}

int main(int argc, char **argv) {
  char message[256], *inputs[8];
  CUdevice second;
  CUcontext own, now;
  if (argc != 4 || driver_open(&driver, argv[1], message, sizeof message) || !(object = dlopen(argv[2], RTLD_NOW))) return 2;
  for (int k = 0; k < CALL(tilth_input_count)(); k++) {
    const struct tilth_tensor *t = CALL(tilth_input_tensor)(k);
    inputs[k] = malloc(t->bytes);
    if (fread(inputs[k], t->bytes, 1, stdin) != 1) return 2;
  }
  if (driver.cuInit(0) || driver.cuDeviceGet(&second, 1) || driver.cuDevicePrimaryCtxRetain(&own, second) || driver.cuCtxSetCurrent(own)) return 2;
  struct tilth_model *there = opened(argv[3]);
  setenv("TILTH_DEVICE", "0", 1);
  struct tilth_model *here = opened(argv[3]);
  runs(there, inputs);
  struct tilth_model *other = opened(argv[3]);
  runs(here, inputs);
  CALL(tilth_close)(here);
  if (!is_used(argv[1])) return fprintf(stderr, "one of two models has given up the card\n"), 1;
  runs(other, inputs);
  CALL(tilth_close)(other);
  if (is_used(argv[1])) return fprintf(stderr, "the card is used, and no model is open there\n"), 1;
  runs(here = opened(argv[3]), inputs);
  CALL(tilth_close)(here);
  runs(there, inputs);
  CALL(tilth_close)(there);
  if (driver.cuCtxGetCurrent(&now) || now != own) return fprintf(stderr, "this thread uses another card now\n"), 1;
  return 0;
}
