/* The part of a package for NVIDIA's GPUs that is the same in all: weights are copied to the card once, values lie in one arena there, and all
 * calls of a run are one graph. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "failure.h"
#include "handle.h"
#include "launch.h"
#include "rates.h"
#include "weights.h"

/* Environment variables: the number of the card, in place of that which the thread uses or else the first, and the driver's library where the
 * system does not find it. */
#define DEVICE_VARIABLE "TILTH_DEVICE"
#define DRIVER_VARIABLE "TILTH_CUDA_DRIVER"

struct tilth_engine {
  struct tilth_device_runtime device;
  CUcontext context;
  CUdeviceptr arena, weights;
  CUgraph graph;
  CUgraphExec run;
  void **inputs, **outputs; /* the caller's side */
  CUevent begin, end; /* of a run */
  struct tilth_device_profile profile;
  struct driver_busy busy; /* for profiles */
};

static struct driver driver;
static int driver_ready; /* 1 = opened, -1 = could not be */
static char driver_message[256];

static void find_driver(void) {
  const char *library = getenv(DRIVER_VARIABLE);
  driver_ready = driver_open(&driver, library ? library : "libcuda.so.1", driver_message, sizeof driver_message) ? -1 : 1;
}

static int fails(CUresult result, const char *step) {
  return result == CUDA_SUCCESS ? 0 : tilth_fail("%s: %s", step, driver_error(&driver, result));
}

/* The profile that is made by this thread. */
static _Thread_local struct tilth_device_profile *profiled;

/* Called before the first call and behind each. Times are the card's, which are read afterwards. */
double tilth_now(void) {
  if (profiled) profiled->call++;
  return 0;
}

/* The number of the card that a model is opened on: that which the environment says, or the thread uses, or the first. */
static int choose_card(void) {
  const char *number = getenv(DEVICE_VARIABLE);
  CUcontext current = NULL;
  CUdevice device, used;
  int card = 0;
  if (number) return atoi(number);
  if (driver.cuCtxGetCurrent(&current) || !current || driver.cuCtxGetDevice(&used)) return 0;
  while (driver.cuDeviceGet(&device, card) == CUDA_SUCCESS && device != used) card++;
  return card;
}

/* The models that are open on each card. They share its primary context, and the code there. */
static int users[TILTH_MOST_CARDS];
/* How often the first of them was opened: the context may have been another one before. */
static int32_t generations[TILTH_MOST_CARDS];
static pthread_mutex_t using = PTHREAD_MUTEX_INITIALIZER;

static CUresult retain(struct tilth_engine *m, CUdevice device) {
  pthread_mutex_lock(&using);
  CUresult result = driver.cuDevicePrimaryCtxRetain(&m->context, device);
  if (result == CUDA_SUCCESS && users[m->device.card]++ == 0) generations[m->device.card]++;
  m->device.generation = generations[m->device.card];
  pthread_mutex_unlock(&using);
  return result;
}

/* The last model takes the code off the card, of which the context may end with it. The thread uses that context. */
static void let_go(const struct tilth_engine *m) {
  pthread_mutex_lock(&using);
  if (--users[m->device.card] == 0) tilth_device_unload(&driver, m->device.card);
  pthread_mutex_unlock(&using);
}

static int open_context(struct tilth_engine *m) {
  CUdevice device;
  int card = m->device.card = choose_card();
  if (fails(driver.cuDeviceGet(&device, card), "choosing a GPU")) return -1;
  if (card >= TILTH_MOST_CARDS) return tilth_fail("choosing a GPU: a process may use the first %d; CUDA_VISIBLE_DEVICES says which they are", TILTH_MOST_CARDS);
  return fails(retain(m, device), "opening the GPU");
}

static int open_device(struct tilth_engine *m) {
  m->device.driver = &driver;
  return fails(driver.cuCtxSetCurrent(m->context), "opening the GPU") || fails(driver.cuStreamCreate(&m->device.stream, 0), "making a stream") ? -1 : 0;
}

/* Makes a model's context current in the thread, and stores the previous one. */
static int enter(const struct tilth_engine *m, CUcontext *before) {
  return fails(driver.cuCtxGetCurrent(before), "choosing the GPU") || fails(driver.cuCtxSetCurrent(m->context), "choosing the GPU") ? -1 : 0;
}

/* The thread goes on with what it used before. */
static void leave(CUcontext before) { driver.cuCtxSetCurrent(before); }

static int64_t at_least_one(int64_t bytes) { return bytes > 0 ? bytes : 1; }

static int open_memory(struct tilth_engine *m, const char *path, int64_t offset) {
  struct tilth_weights w = {0};
  if (fails(driver.cuMemAlloc_v2(&m->arena, at_least_one(tilth_plan.arena_bytes)), "allocating memory for values on the GPU") ||
      fails(driver.cuMemAlloc_v2(&m->weights, at_least_one(tilth_plan.weights_bytes)), "allocating memory for weights on the GPU") ||
      fails(driver.cuMemsetD8Async(m->arena, 0, at_least_one(tilth_plan.arena_bytes), m->device.stream), "clearing memory on the GPU"))
    return -1;
  if (tilth_weights_map(&w, path, offset)) return -1;
  int bad = tilth_plan.weights_bytes > 0 ? fails(driver.cuMemcpyHtoD_v2(m->weights, w.data, tilth_plan.weights_bytes), "copying weights to the GPU") : 0;
  tilth_weights_unmap(&w);
  return bad;
}

static CUdeviceptr at(const struct tilth_engine *m, struct tilth_place p) { return (p.in_weights ? m->weights : m->arena) + (uint64_t)p.offset; }

/* The caller's copies of tensors, in memory that the card reads and writes itself: others it copies by way of such. */
static int mirrors(void ***list, const struct tilth_tensor *tensors, int32_t n) {
  if (!(*list = calloc(at_least_one(n), sizeof **list))) return tilth_fail("out of memory");
  for (int32_t k = 0; k < n; k++) {
    size_t bytes = at_least_one(tensors[k].bytes);
    if (fails(driver.cuMemHostAlloc(&(*list)[k], bytes, 0), "allocating memory for inputs and outputs")) return -1;
    memset((*list)[k], 0, bytes);
  }
  return 0;
}

static int open_mirrors(struct tilth_engine *m) {
  return mirrors(&m->inputs, tilth_plan.inputs, tilth_plan.n_inputs) || mirrors(&m->outputs, tilth_plan.outputs, tilth_plan.n_outputs) ? -1 : 0;
}

static int open_events(struct tilth_engine *m) {
  return fails(driver.cuEventCreate(&m->begin, 0), "making an event") || fails(driver.cuEventCreate(&m->end, 0), "making an event") ? -1 : 0;
}

/* Seconds between two events, once the card has come by. */
static int between(CUevent begin, CUevent end, double *seconds) {
  float milliseconds = 0;
  int bad = fails(driver.cuEventElapsedTime(&milliseconds, begin, end), "timing the model");
  *seconds = 1e-3 * milliseconds;
  return bad;
}

/* Starts all calls, one after another. */
static int start(struct tilth_engine *m, double *seconds) {
  m->device.launches = 0;
  tilth_plan.run(&m->device.runtime, (char *)m->arena, (char *)m->weights, seconds);
  CUresult failed = m->device.failed;
  if (failed == CUDA_SUCCESS) return 0;
  if (m->device.own_failed) return tilth_fail("%s", m->device.refused);
  return tilth_fail("%s: %s%s", m->device.step, driver_error(&driver, failed), m->device.refused);
}

/* Kernels are loaded by a run, which must come before the one that is recorded. */
static int open_graph(struct tilth_engine *m) {
  if (start(m, NULL) || fails(driver.cuStreamSynchronize(m->device.stream), "running the model for the first time")) return -1;
  if (fails(driver.cuStreamBeginCapture_v2(m->device.stream, CU_CAPTURE_THREAD_LOCAL), "recording a run")) return -1;
  int bad = start(m, NULL);
  CUresult ended = driver.cuStreamEndCapture(m->device.stream, &m->graph);
  if (bad) return -1; /* and has said so */
  return fails(ended, "recording a run") || fails(driver.cuGraphInstantiateWithFlags(&m->run, m->graph, 0), "making a graph of a run") ? -1 : 0;
}

static int start_driver(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, find_driver);
  if (driver_ready < 0) return tilth_fail("%s", driver_message);
  return fails(driver.cuInit(0), "starting the driver");
}

struct tilth_engine *tilth_engine_open(const char *weights, int64_t offset, const struct tilth_options *options) {
  (void)options;
  CUcontext before = NULL;
  struct tilth_engine *m = calloc(1, sizeof *m);
  if (!m) tilth_fail("out of memory");
  if (!m || start_driver() || fails(driver.cuCtxGetCurrent(&before), "choosing a GPU")) return free(m), NULL;
  if (open_context(m) || open_device(m) || open_memory(m, weights, offset) || open_mirrors(m) || open_events(m) || open_graph(m)) {
    tilth_engine_close(m);
    m = NULL;
  }
  leave(before);
  return m;
}

static void close_profile(struct tilth_engine *m) {
  struct tilth_device_profile *p = &m->profile;
  for (int32_t k = 0; k < p->most; k++) {
    if (p->begins && p->begins[k]) driver.cuEventDestroy_v2(p->begins[k]);
    if (p->ends && p->ends[k]) driver.cuEventDestroy_v2(p->ends[k]);
  }
  driver_busy_close(&driver, &m->busy);
  free(p->launches);
  free(p->begins);
  free(p->ends);
  m->profile = (struct tilth_device_profile){0};
}

static void free_all(void **list, int32_t n) {
  for (int32_t k = 0; list && k < n; k++)
    if (list[k]) driver.cuMemFreeHost(list[k]);
  free(list);
}

static void close_all(struct tilth_engine *m) {
  close_profile(m);
  if (m->begin) driver.cuEventDestroy_v2(m->begin);
  if (m->end) driver.cuEventDestroy_v2(m->end);
  if (m->run) driver.cuGraphExecDestroy(m->run);
  if (m->graph) driver.cuGraphDestroy(m->graph);
  if (m->arena) driver.cuMemFree_v2(m->arena);
  if (m->weights) driver.cuMemFree_v2(m->weights);
  if (m->device.stream) driver.cuStreamDestroy_v2(m->device.stream);
  free_all(m->inputs, tilth_plan.n_inputs);
  free_all(m->outputs, tilth_plan.n_outputs);
}

/* What cannot be freed, because the card is gone, is gone as well. */
void tilth_engine_close(struct tilth_engine *m) {
  CUcontext before = NULL;
  CUdevice device;
  if (m && m->context && driver.cuCtxGetCurrent(&before) == CUDA_SUCCESS) {
    driver.cuCtxSetCurrent(m->context);
    close_all(m);
    let_go(m);
    leave(before);
    if (driver.cuDeviceGet(&device, m->device.card) == CUDA_SUCCESS) driver.cuDevicePrimaryCtxRelease_v2(device);
  }
  free(m);
}

/* Programs for GPUs have no extents that runs choose. */
int64_t *tilth_engine_extent(const struct tilth_engine *m, int32_t k) { return (void)m, (void)k, NULL; }

int32_t tilth_engine_threads(const struct tilth_engine *m) { return (void)m, 1; }

void *tilth_engine_input(struct tilth_engine *m, int32_t k) { return m->inputs[k]; }

const void *tilth_engine_result(const struct tilth_engine *m, int32_t k) { return m->outputs[k]; }

static int give_inputs(struct tilth_engine *m) {
  for (int32_t k = 0; k < tilth_plan.n_inputs; k++)
    if (fails(driver.cuMemcpyHtoDAsync_v2(at(m, tilth_plan.input_places[k]), m->inputs[k], tilth_plan.inputs[k].bytes, m->device.stream), "copying an input")) return -1;
  return 0;
}

static int take_outputs(struct tilth_engine *m) {
  for (int32_t k = 0; k < tilth_plan.n_outputs; k++)
    if (fails(driver.cuMemcpyDtoHAsync_v2(m->outputs[k], at(m, tilth_plan.output_places[k]), tilth_plan.outputs[k].bytes, m->device.stream), "copying an output"))
      return -1;
  return fails(driver.cuStreamSynchronize(m->device.stream), "running the model");
}

static void run_here(struct tilth_engine *m) {
  if (give_inputs(m) || fails(driver.cuEventRecord(m->begin, m->device.stream), "timing the model") ||
      fails(driver.cuGraphLaunch(m->run, m->device.stream), "running the model") ||
      fails(driver.cuEventRecord(m->end, m->device.stream), "timing the model"))
    return;
  take_outputs(m);
}

void tilth_engine_run(struct tilth_engine *m) {
  CUcontext before;
  tilth_fail(NULL);
  if (enter(m, &before)) return;
  run_here(m);
  leave(before);
}

static double device_seconds(struct tilth_engine *m) {
  CUcontext before;
  double seconds = 0;
  tilth_fail(NULL);
  if (tilth_plan.n_calls == 0 || enter(m, &before)) return 0;
  between(m->begin, m->end, &seconds);
  leave(before);
  return seconds;
}

static int make_profile(struct tilth_engine *m) {
  struct tilth_device_profile *p = &m->profile;
  p->most = m->device.launches;
  p->launches = calloc(p->most, sizeof *p->launches), p->begins = calloc(p->most, sizeof *p->begins), p->ends = calloc(p->most, sizeof *p->ends);
  if (!p->launches || !p->begins || !p->ends) return tilth_fail("out of memory");
  for (int32_t k = 0; k < p->most; k++)
    if (fails(driver.cuEventCreate(&p->begins[k], 0), "making an event") || fails(driver.cuEventCreate(&p->ends[k], 0), "making an event")) return -1;
  return fails(driver_busy_open(&driver, &m->busy), "making work for the GPU");
}

/* Once the model has run, it is known how many launches that takes. */
static int open_profile(struct tilth_engine *m) {
  if (m->busy.memory || m->device.launches == 0 || make_profile(m) == 0) return 0;
  close_profile(m);
  return -1;
}

/* So many launches are put into the queue while the card is busy once. */
enum { LAUNCHES_AHEAD = 32 };

/* The card is kept busy until all launches are in its queue: they follow at once then, and what lies between the events around one is its own. */
static int run_profiled(struct tilth_engine *m, double *seconds) {
  m->profile.n = 0, m->profile.call = -1;
  m->device.profile = profiled = &m->profile;
  int ahead = m->profile.most > 0 ? 1 + m->profile.most / LAUNCHES_AHEAD : 0;
  int bad = fails(driver_busy_start(&driver, m->device.stream, &m->busy, ahead), "running the model") || start(m, seconds);
  m->device.profile = profiled = NULL;
  return bad;
}

static void profile_here(struct tilth_engine *m, double *seconds) {
  int bad = open_profile(m) || give_inputs(m) || run_profiled(m, seconds) || take_outputs(m);
  for (int32_t k = 0; k < tilth_plan.n_calls; k++) seconds[k] = 0;
  for (int32_t k = 0; k < m->profile.n && !bad; k++) {
    struct tilth_launch *l = &m->profile.launches[k];
    bad = between(m->profile.begins[k], m->profile.ends[k], &l->seconds);
    seconds[l->call] += l->seconds;
  }
}

void tilth_engine_profile(struct tilth_engine *m, double *seconds) {
  CUcontext before;
  tilth_fail(NULL);
  for (int32_t k = 0; k < tilth_plan.n_calls; k++) seconds[k] = 0;
  if (enter(m, &before)) return;
  profile_here(m, seconds);
  leave(before);
}

static int run_on_stream(struct tilth_engine *m, const void *const *inputs, void *const *outputs, CUstream s) {
  for (int32_t k = 0; k < tilth_plan.n_inputs; k++)
    if (fails(driver.cuMemcpyDtoDAsync_v2(at(m, tilth_plan.input_places[k]), (CUdeviceptr)inputs[k], tilth_plan.inputs[k].bytes, s), "copying an input")) return -1;
  if (fails(driver.cuGraphLaunch(m->run, s), "running the model")) return -1;
  for (int32_t k = 0; k < tilth_plan.n_outputs; k++) {
    CUdeviceptr from = at(m, tilth_plan.output_places[k]);
    size_t bytes = tilth_plan.outputs[k].bytes;
    int bad = k < tilth_output_count() ? fails(driver.cuMemcpyDtoDAsync_v2((CUdeviceptr)outputs[k], from, bytes, s), "copying an output")
                                       : fails(driver.cuMemcpyDtoHAsync_v2(m->outputs[k], from, bytes, s), "copying a count");
    if (bad) return -1;
  }
  return 0;
}

static int run_on_device(struct tilth_engine *m, const void *const *inputs, void *const *outputs, void *stream) {
  CUcontext before;
  tilth_fail(NULL);
  if (enter(m, &before)) return -1;
  int bad = run_on_stream(m, inputs, outputs, stream);
  leave(before);
  return bad;
}

/* Far more than a cache holds. */
#define COPIED_BYTES (256 << 20)

void tilth_engine_peak(struct tilth_engine *m, double *flops, double *bytes) {
  CUcontext before;
  *flops = *bytes = 0;
  if (enter(m, &before)) return;
  *flops = driver_flops(&driver, m->device.stream);
  *bytes = driver_copies(&driver, m->device.stream, COPIED_BYTES);
  leave(before);
}

static double matrices_peak(struct tilth_engine *m, int32_t format) {
  CUcontext before;
  if (enter(m, &before)) return 0;
  double flops = driver_matrices(&driver, m->device.stream, format);
  leave(before);
  return flops;
}

double tilth_engine_integer_peak(struct tilth_engine *m) { return (void)m, 0; }

/* What only this kind of package has of the interface. */

TILTH_API int tilth_run_on_device(struct tilth_model *m, const void *const *inputs, void *const *outputs, void *stream) {
  tilth_lock(m);
  int bad = run_on_device(m->engine, inputs, outputs, stream);
  tilth_unlock(m);
  return bad;
}

TILTH_API double tilth_device_seconds(struct tilth_model *m) {
  tilth_lock(m);
  double seconds = device_seconds(m->engine);
  tilth_unlock(m);
  return seconds;
}

TILTH_API double tilth_matrices_peak(struct tilth_model *m, int32_t format) {
  tilth_lock(m);
  double operations = matrices_peak(m->engine, format);
  tilth_unlock(m);
  return operations;
}

TILTH_API const struct tilth_launch *tilth_profile_launches(struct tilth_model *m, int32_t *n) {
  tilth_lock(m);
  const struct tilth_launch *launches = m->engine->profile.launches;
  *n = m->engine->profile.n;
  tilth_unlock(m);
  return launches;
}

const struct tilth_device_api tilth_device_functions = {
    .size = sizeof tilth_device_functions, .run_on_device = tilth_run_on_device, .device_seconds = tilth_device_seconds,
    .matrices_peak = tilth_matrices_peak, .profile_launches = tilth_profile_launches,
};
