/* The part of a package for OpenCL devices that is the same in all: weights are copied to the device once, and values lie in one buffer there. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "failure.h"
#include "handle.h"
#include "launch.h"
#include "rates.h"
#include "weights.h"

/* Environment variables: the number of the device, and OpenCL's library where the system does not find it. */
#define DEVICE_VARIABLE "TILTH_DEVICE"
#define LIBRARY_VARIABLE "TILTH_OPENCL_LIBRARY"

struct tilth_engine {
  struct tilth_device_runtime device;
  void **inputs, **outputs; /* the caller's side */
};

/* The library, and the device with a context that all models share. */
static struct opencl api;
static struct opencl_device shared;
static int shared_ready; /* 1 = opened, -1 = could not be */
static char shared_message[512];

static void open_shared(void) {
  const char *library = getenv(LIBRARY_VARIABLE), *number = getenv(DEVICE_VARIABLE);
  int bad = opencl_load(&api, library ? library : OPENCL_LIBRARY, shared_message, sizeof shared_message) ||
            opencl_find(&api, number ? atoi(number) : 0, &shared, shared_message, sizeof shared_message) ||
            opencl_open(&shared, shared_message, sizeof shared_message);
  shared_ready = bad ? -1 : 1;
}

static int fails(int32_t error, const char *step) { return error == CL_SUCCESS ? 0 : tilth_fail("%s: %s", step, opencl_error(error)); }

/* The model that is profiled by this thread. */
static _Thread_local struct tilth_engine *profiled;

/* In a profile the clock is the device's: it goes while kernels run. */
double tilth_now(void) { return profiled ? profiled->device.seconds : 0; }

static int open_device(struct tilth_engine *m) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  int32_t error;
  pthread_once(&once, open_shared);
  if (shared_ready < 0) return tilth_fail("%s", shared_message);
  m->device.device = shared;
  m->device.device.queue = api.clCreateCommandQueue(shared.context, shared.device, CL_QUEUE_PROFILING, &error);
  return fails(error, "making a queue");
}

static int64_t at_least_one(int64_t bytes) { return bytes > 0 ? bytes : 1; }

static int allocate(cl_mem *memory, int64_t bytes, const char *what) {
  int32_t error;
  *memory = api.clCreateBuffer(shared.context, CL_READ_WRITE, (size_t)at_least_one(bytes), NULL, &error);
  return fails(error, what);
}

static int open_memory(struct tilth_engine *m, const char *path, int64_t offset) {
  struct tilth_weights w = {0};
  static const unsigned char zero;
  cl_command_queue queue = m->device.device.queue;
  if (allocate(&m->device.arena, tilth_plan.arena_bytes, "allocating memory for values on the device") ||
      allocate(&m->device.weights, tilth_plan.weights_bytes, "allocating memory for weights on the device") ||
      fails(api.clEnqueueFillBuffer(queue, m->device.arena, &zero, 1, 0, (size_t)at_least_one(tilth_plan.arena_bytes), 0, NULL, NULL), "clearing memory on the device"))
    return -1;
  if (tilth_weights_map(&w, path, offset)) return -1;
  int bad = tilth_plan.weights_bytes > 0 ? fails(api.clEnqueueWriteBuffer(queue, m->device.weights, 1, 0, (size_t)tilth_plan.weights_bytes, w.data, 0, NULL, NULL),
                                                 "copying weights to the device")
                                         : 0;
  tilth_weights_unmap(&w);
  return bad;
}

/* The caller's copies of tensors. */
static void **mirrors(const struct tilth_tensor *tensors, int32_t n) {
  void **list = calloc(n + 1, sizeof *list);
  for (int32_t k = 0; list && k < n; k++)
    if (!(list[k] = calloc(1, at_least_one(tensors[k].bytes)))) return list[n] = list, list;
  return list;
}

static int open_mirrors(struct tilth_engine *m) {
  m->inputs = mirrors(tilth_plan.inputs, tilth_plan.n_inputs);
  m->outputs = mirrors(tilth_plan.outputs, tilth_plan.n_outputs);
  return m->inputs && m->outputs && !m->inputs[tilth_plan.n_inputs] && !m->outputs[tilth_plan.n_outputs] ? 0 : tilth_fail("out of memory");
}

/* Starts all calls, one after another. */
static int start(struct tilth_engine *m, double *seconds) {
  tilth_device_begin(&m->device);
  tilth_plan.run(&m->device.runtime, (char *)ARENA_ADDRESS, (char *)WEIGHTS_ADDRESS, seconds);
  if (m->device.failed == CL_SUCCESS) return 0;
  return tilth_fail("%s: %s", m->device.step, m->device.message[0] ? m->device.message : opencl_error(m->device.failed));
}

static int finish(struct tilth_engine *m, const char *step) { return fails(api.clFinish(m->device.device.queue), step); }

/* Waits for copies that are under way, whose memory may go, after whatever went wrong. */
static void settle(const struct tilth_engine *m) {
  if (m->device.device.queue) api.clFinish(m->device.device.queue);
}

struct tilth_engine *tilth_engine_open(const char *weights, int64_t offset, const struct tilth_options *options) {
  (void)options;
  struct tilth_engine *m = calloc(1, sizeof *m);
  if (!m) tilth_fail("out of memory");
  /* Kernels are compiled by the first run. */
  if (m && (open_device(m) || open_memory(m, weights, offset) || open_mirrors(m) || start(m, NULL) || finish(m, "running the model for the first time"))) {
    tilth_engine_close(m);
    return NULL;
  }
  return m;
}

static void free_all(void **list, int32_t n) {
  for (int32_t k = 0; list && k < n; k++) free(list[k]);
  free(list);
}

void tilth_engine_close(struct tilth_engine *m) {
  if (!m) return;
  if (shared_ready > 0) {
    settle(m);
    tilth_device_begin(&m->device);
    if (m->device.arena) api.clReleaseMemObject(m->device.arena);
    if (m->device.weights) api.clReleaseMemObject(m->device.weights);
    if (m->device.device.queue) api.clReleaseCommandQueue(m->device.device.queue);
  }
  free_all(m->inputs, tilth_plan.n_inputs);
  free_all(m->outputs, tilth_plan.n_outputs);
  free(m);
}

/* Programs for GPUs have no extents that runs choose. */
int64_t *tilth_engine_extent(const struct tilth_engine *m, int32_t k) { return (void)m, (void)k, NULL; }

int32_t tilth_engine_threads(const struct tilth_engine *m) { return (void)m, 1; }

void *tilth_engine_input(struct tilth_engine *m, int32_t k) { return m->inputs[k]; }

const void *tilth_engine_result(const struct tilth_engine *m, int32_t k) { return m->outputs[k]; }

static cl_mem memory_of(const struct tilth_engine *m, struct tilth_place p) { return p.in_weights ? m->device.weights : m->device.arena; }

static int give_inputs(struct tilth_engine *m) {
  for (int32_t k = 0; k < tilth_plan.n_inputs; k++) {
    struct tilth_place p = tilth_plan.input_places[k];
    size_t bytes = (size_t)tilth_plan.inputs[k].bytes;
    if (bytes > 0 && fails(api.clEnqueueWriteBuffer(m->device.device.queue, memory_of(m, p), 0, (size_t)p.offset, bytes, m->inputs[k], 0, NULL, NULL), "copying an input"))
      return -1;
  }
  return 0;
}

static int take_outputs(struct tilth_engine *m) {
  for (int32_t k = 0; k < tilth_plan.n_outputs; k++) {
    struct tilth_place p = tilth_plan.output_places[k];
    size_t bytes = (size_t)tilth_plan.outputs[k].bytes;
    if (bytes > 0 && fails(api.clEnqueueReadBuffer(m->device.device.queue, memory_of(m, p), 0, (size_t)p.offset, bytes, m->outputs[k], 0, NULL, NULL), "copying an output"))
      return -1;
  }
  return finish(m, "running the model");
}

void tilth_engine_run(struct tilth_engine *m) {
  tilth_fail(NULL);
  if (give_inputs(m) || start(m, NULL) || take_outputs(m)) settle(m);
}

void tilth_engine_profile(struct tilth_engine *m, double *seconds) {
  tilth_fail(NULL);
  profiled = m, m->device.waits = 1, m->device.seconds = 0;
  if (give_inputs(m) || start(m, seconds) || take_outputs(m)) settle(m);
  profiled = NULL, m->device.waits = 0;
}

/* Far more than a cache holds. */
#define COPIED_BYTES (256 << 20)

void tilth_engine_peak(struct tilth_engine *m, double *flops, double *bytes) {
  *flops = opencl_flops(&m->device.device);
  *bytes = opencl_copies(&m->device.device, COPIED_BYTES);
}

double tilth_engine_integer_peak(struct tilth_engine *m) { return (void)m, 0; }

/* What only packages for devices have of the interface. */

TILTH_API double tilth_device_seconds(struct tilth_model *m) {
  tilth_fail(NULL);
  tilth_lock(m);
  const struct tilth_device_runtime *d = &m->engine->device;
  double seconds = d->last ? opencl_seconds(&api, d->first, d->last) : 0;
  tilth_unlock(m);
  return seconds > 0 ? seconds : 0;
}

TILTH_API int tilth_run_on_device(struct tilth_model *m, const void *const *inputs, void *const *outputs, void *stream) {
  (void)m, (void)inputs, (void)outputs, (void)stream;
  return tilth_fail("OpenCL's memory belongs to the context that made it, and this package has its own: use tilth_run");
}

const struct tilth_device_api tilth_device_functions = {
    .size = sizeof tilth_device_functions, .run_on_device = tilth_run_on_device, .device_seconds = tilth_device_seconds,
};
