#include "launch.h"

#include <pthread.h>

enum { MOST_POINTERS = 256 };

/* Modules are loaded once a process, by the first model that is opened. */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

static int went_wrong(struct tilth_device_runtime *d, CUresult result, const char *step) {
  if (result == CUDA_SUCCESS) return 0;
  if (d->failed == CUDA_SUCCESS) d->failed = result, d->step = step;
  return -1;
}

static CUresult load_module(const struct driver *d, struct tilth_device_code *c) {
  return driver_load(d, &c->module, tilth_device_assembled(c->parts), tilth_device_text(c->parts), NULL, 0);
}

static int load(struct tilth_device_runtime *d, struct tilth_device_kernel *k) {
  CUfunction function;
  if (!k->code->module && went_wrong(d, load_module(d->driver, k->code), "loading kernels")) return -1;
  if (went_wrong(d, d->driver->cuModuleGetFunction(&function, k->code->module, k->name), "finding a kernel")) return -1;
  if (k->shared_bytes > 0 && went_wrong(d, d->driver->cuFuncSetAttribute(function, CU_FUNC_MAX_DYNAMIC_SHARED_BYTES, k->shared_bytes), "asking for shared memory"))
    return -1;
  k->function = function;
  return 0;
}

void tilth_device_launch(const struct tilth_runtime *rt, struct tilth_device_kernel *k, void *const *pointers, int n) {
  struct tilth_device_runtime *d = (struct tilth_device_runtime *)rt;
  void *parameters[MOST_POINTERS + 1] = {NULL};
  if (d->failed != CUDA_SUCCESS) return;
  pthread_mutex_lock(&loading);
  int bad = k->function ? 0 : load(d, k);
  pthread_mutex_unlock(&loading);
  if (bad) return;
  for (int i = 0; i < n; i++) parameters[i] = (void *)&pointers[i];
  went_wrong(d, d->driver->cuLaunchKernel(k->function, (unsigned)k->blocks, 1, 1, (unsigned)k->threads, 1, 1, (unsigned)k->shared_bytes, d->stream, parameters, NULL),
             "starting a kernel");
}
