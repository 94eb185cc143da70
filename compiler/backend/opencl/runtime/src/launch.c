#include "launch.h"

#include <pthread.h>

/* Kernels belong to all models of a package, and so do the arguments that were given last: one is started at a time. */
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;

static int went_wrong(struct tilth_device_runtime *d, int32_t error, const char *step) {
  if (error == CL_SUCCESS) return 0;
  if (d->failed == CL_SUCCESS) d->failed = error, d->step = step;
  return -1;
}

static int load(struct tilth_device_runtime *d, struct tilth_device_kernel *k) {
  int32_t error;
  if (!k->code->program && !(k->code->program = opencl_build(&d->device, tilth_device_text(k->code->parts), d->message, sizeof d->message)))
    return went_wrong(d, CL_BUILD_PROGRAM_FAILURE, "compiling kernels");
  cl_kernel kernel = d->device.api->clCreateKernel(k->code->program, k->name, &error);
  if (went_wrong(d, error, "finding a kernel")) return -1;
  k->kernel = kernel;
  return 0;
}

static int give(struct tilth_device_runtime *d, struct tilth_device_kernel *k, void *const *pointers, int n) {
  for (int i = 0; i < n; i++) {
    uint64_t address = (uint64_t)pointers[i];
    int in_weights = address >= WEIGHTS_ADDRESS;
    if (went_wrong(d, opencl_parameter(d->device.api, k->kernel, i, in_weights ? d->weights : d->arena, address - (in_weights ? WEIGHTS_ADDRESS : ARENA_ADDRESS)),
                   "giving a kernel its arguments"))
      return -1;
  }
  return 0;
}

void tilth_device_begin(struct tilth_device_runtime *d) {
  if (d->first && d->first != d->last) d->device.api->clReleaseEvent(d->first);
  if (d->last) d->device.api->clReleaseEvent(d->last);
  d->first = d->last = NULL;
}

/* A kernel was started: the event is kept for the times that are asked for later. */
static void note(struct tilth_device_runtime *d, cl_event event) {
  if (d->last && d->last != d->first) d->device.api->clReleaseEvent(d->last);
  d->last = event;
  if (!d->first) d->first = event;
  if (!d->waits || went_wrong(d, d->device.api->clWaitForEvents(1, &event), "running a kernel")) return;
  double seconds = opencl_seconds(d->device.api, event, event);
  d->seconds += seconds > 0 ? seconds : 0;
}

void tilth_device_launch(const struct tilth_runtime *rt, struct tilth_device_kernel *k, void *const *pointers, int n) {
  struct tilth_device_runtime *d = (struct tilth_device_runtime *)rt;
  cl_event event;
  if (d->failed != CL_SUCCESS) return;
  pthread_mutex_lock(&starting);
  int bad = (!k->kernel && load(d, k)) || give(d, k, pointers, n) ||
            went_wrong(d, opencl_launch(&d->device, k->kernel, k->blocks, k->threads, &event), "starting a kernel");
  pthread_mutex_unlock(&starting);
  if (!bad) note(d, event);
}
