/* A user of a package's second entry: its inputs and outputs lie in the memory of a GPU. Arguments: the driver's library, the package's object,
 * the weights. It reads and writes like user.c, and reports on standard error what went wrong after so many runs. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver.h"
#include "tilth.h"

static void *object;

static void *symbol(const char *name) {
  void *found = dlsym(object, name);
  if (!found) exit((fprintf(stderr, "%s\n", dlerror()), 1));
  return found;
}
#define CALL(name) ((__typeof__(&name))symbol(#name))

static struct driver driver;

/* A program that has memory on a card uses it in each of its threads. */
static void use_card(void) {
  CUdevice first;
  CUcontext context;
  if (driver.cuInit(0) || driver.cuDeviceGet(&first, 0) || driver.cuDevicePrimaryCtxRetain(&context, first) || driver.cuCtxSetCurrent(context)) exit(2);
}

static CUdeviceptr allocate(const struct tilth_tensor *t) {
  CUdeviceptr memory;
  if (driver.cuMemAlloc_v2(&memory, t->bytes)) exit(3);
  return memory;
}

struct run {
  struct tilth_model *model;
  void **inputs, **outputs;
  int failed;
};

/* Threads may run a model that did not open it. */
static void *run(void *of) {
  struct run *r = of;
  use_card();
  r->failed = CALL(tilth_run_on_device)(r->model, (const void *const *)r->inputs, r->outputs, NULL) || driver.cuStreamSynchronize(NULL);
  if (r->failed) fprintf(stderr, "%s\n", CALL(tilth_last_error)());
  return NULL;
}

static void *close_model(void *model) {
  CALL(tilth_close)(model);
  return NULL;
}

static void elsewhere(void *(*work)(void *), void *of) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, of) || pthread_join(thread, NULL)) exit(2);
}

int main(int argc, char **argv) {
  char message[256];
  void *inputs[8], *outputs[8];
  double seconds[64];
  if (argc != 4 || driver_open(&driver, argv[1], message, sizeof message)) return 2;
  object = dlopen(argv[2], RTLD_NOW);
  if (!object) return fprintf(stderr, "%s\n", dlerror()), 1;
  struct tilth_model *m = CALL(tilth_open)(argv[3], 0);
  if (!m) return fprintf(stderr, "%s\n", CALL(tilth_last_error)()), 1;
  use_card();
  for (int k = 0; k < CALL(tilth_input_count)(); k++) {
    const struct tilth_tensor *t = CALL(tilth_input_tensor)(k);
    char *host = malloc(t->bytes);
    CUdeviceptr memory = allocate(t);
    if (fread(host, t->bytes, 1, stdin) != 1 || driver.cuMemcpyHtoD_v2(memory, host, t->bytes)) return 2;
    inputs[k] = (void *)memory;
  }
  for (int k = 0; k < CALL(tilth_output_count)(); k++) outputs[k] = (void *)allocate(CALL(tilth_output_tensor)(k));
  struct run r = {m, inputs, outputs, 0};
  elsewhere(run, &r);
  if (r.failed) return 1;
  for (int k = 0; k < CALL(tilth_output_count)(); k++) {
    const struct tilth_tensor *t = CALL(tilth_output_tensor)(k);
    char *host = malloc(t->bytes);
    if (driver.cuMemcpyDtoH_v2(host, (CUdeviceptr)outputs[k], t->bytes)) return 2;
    fwrite(host, t->bytes, 1, stdout);
  }
  CALL(tilth_profile)(m, seconds);
  for (int k = 0; k < CALL(tilth_call_count)(); k++)
    if (seconds[k] <= 0) return 4;
  int32_t launches;
  const struct tilth_launch *l = CALL(tilth_profile_launches)(m, &launches);
  if (launches < CALL(tilth_call_count)()) return 6;
  for (int k = 0; k < launches; k++)
    if (l[k].seconds <= 0 || l[k].call < 0 || l[k].call >= CALL(tilth_call_count)() || !l[k].kernel || l[k].registers <= 0 || l[k].occupancy <= 0 || l[k].occupancy > 1)
      return 7;
  for (int k = 0; k < 8; k++)
    if (CALL(tilth_matrices_peak)(m, k) <= 0) return 8;
  if (CALL(tilth_matrices_peak)(m, 8) != 0) return 8;
  double flops, bytes;
  CALL(tilth_peak)(m, &flops, &bytes);
  if (flops <= 0 || bytes <= 0) return 5;
  elsewhere(close_model, m);
  return 0;
}
