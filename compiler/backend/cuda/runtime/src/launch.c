#include "launch.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MOST_POINTERS = 256, MOST_MAPS = 16 };

/* Modules are loaded once a process and card, by the first model that is opened there, and stay until the last one is closed. */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
/* The kernels that were loaded on some card. */
static struct tilth_device_kernel *listed;

static int went_wrong(struct tilth_device_runtime *d, CUresult result, const char *step) {
  if (result == CUDA_SUCCESS) return 0;
  if (d->failed == CUDA_SUCCESS) d->failed = result, d->step = step;
  return -1;
}

/* The chip that PTX is for, such as sm_80. */
static void chip_of(const char *ptx, char chip[16]) {
  static const char word[] = "\n.target ";
  const char *at = strstr(ptx, word);
  snprintf(chip, 16, "%.*s", at ? (int)strcspn(at + strlen(word), ",\r\n") : 0, at ? at + strlen(word) : "");
}

/* Says which chips code that was refused is for, and which one this is, where these are not the same; and what the driver's compiler says. */
static void explain(struct tilth_device_runtime *d, const char *ptx, const char *log) {
  CUdevice device;
  char chip[16], own[16] = "";
  int major = 0, minor = 0, n = 0;
  chip_of(ptx, chip);
  if (d->driver->cuCtxGetDevice(&device) == CUDA_SUCCESS && d->driver->cuDeviceGetAttribute(&major, CU_COMPUTE_MAJOR, device) == CUDA_SUCCESS &&
      d->driver->cuDeviceGetAttribute(&minor, CU_COMPUTE_MINOR, device) == CUDA_SUCCESS)
    snprintf(own, sizeof own, "sm_%d%d", major, minor);
  if (own[0] && chip[0] && strncmp(chip, own, strlen(own)) != 0) {
    const char *only = chip[strlen(chip) - 1] == 'a' ? "that chip alone" : "that chip and later ones";
    n = snprintf(d->refused, sizeof d->refused, "; they are for %s, %s, and this GPU is %s: compile the model for it", chip, only, own);
  }
  if (log[0]) snprintf(d->refused + n, sizeof d->refused - n, ". %s", log);
}

static CUresult load_module(struct tilth_device_runtime *d, struct tilth_device_code *c) {
  char log[2048] = "";
  const char *ptx = tilth_device_text(c->parts);
  CUresult result = driver_load(d->driver, &c->modules[d->card], tilth_device_assembled(c->parts), ptx, log, sizeof log);
  if (result != CUDA_SUCCESS) explain(d, ptx, log);
  return result;
}

static void list(struct tilth_device_kernel *k) {
  if (k->is_listed) return;
  k->is_listed = 1, k->next = listed, listed = k;
}

static int load(struct tilth_device_runtime *d, struct tilth_device_kernel *k) {
  CUfunction function;
  list(k);
  if (!k->code->modules[d->card] && went_wrong(d, load_module(d, k->code), "loading kernels")) return -1;
  if (went_wrong(d, d->driver->cuModuleGetFunction(&function, k->code->modules[d->card], k->name), "finding a kernel")) return -1;
  if (k->shared_bytes > 0 && went_wrong(d, d->driver->cuFuncSetAttribute(function, CU_FUNC_MAX_DYNAMIC_SHARED_BYTES, k->shared_bytes), "asking for shared memory"))
    return -1;
  k->functions[d->card] = function;
  return 0;
}

/* What the driver made of a kernel. */
static void describe(struct tilth_device_runtime *d, const struct tilth_device_kernel *k, struct tilth_launch *l) {
  CUfunction function = k->functions[d->card];
  CUdevice device;
  int resident = 0, room = 0, shared = 0;
  if (went_wrong(d, d->driver->cuFuncGetAttribute(&l->registers, CU_FUNC_REGISTERS, function), "describing a kernel") ||
      went_wrong(d, d->driver->cuFuncGetAttribute(&l->spilled_bytes, CU_FUNC_LOCAL_BYTES, function), "describing a kernel") ||
      went_wrong(d, d->driver->cuFuncGetAttribute(&shared, CU_FUNC_SHARED_BYTES, function), "describing a kernel") ||
      went_wrong(d, d->driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(&resident, function, k->threads, (size_t)k->shared_bytes), "describing a kernel") ||
      went_wrong(d, d->driver->cuCtxGetDevice(&device), "describing the GPU") ||
      went_wrong(d, d->driver->cuDeviceGetAttribute(&room, CU_MULTIPROCESSOR_THREADS, device), "describing the GPU"))
    return;
  l->shared_bytes += shared;
  if (room > 0) l->occupancy = (double)resident * k->threads / room;
}

/* Makes the tensor maps of a launch, and puts them in the place of pointers. */
static int encode(struct tilth_device_runtime *d, const struct tilth_device_kernel *k, void *const *pointers, void **parameters, struct driver_map *maps) {
  for (int b = 0; b < k->n_boxes; b++) {
    if (went_wrong(d, driver_encode(d->driver, &k->boxes[b], (CUdeviceptr)pointers[b], &maps[b]), "making a tensor map")) return -1;
    parameters[b] = &maps[b].map;
  }
  return 0;
}

static int start(struct tilth_device_runtime *d, const struct tilth_device_kernel *k, void **parameters) {
  return went_wrong(d, d->driver->cuLaunchKernel(k->functions[d->card], (unsigned)k->blocks, 1, 1, (unsigned)k->threads, 1, 1, (unsigned)k->shared_bytes, d->stream,
                                                 parameters, NULL),
                    "starting a kernel");
}

static void start_profiled(struct tilth_device_runtime *d, const struct tilth_device_kernel *k, void **parameters) {
  struct tilth_device_profile *p = d->profile;
  if (p->n == p->most) return;
  p->launches[p->n] = (struct tilth_launch){.kernel = k->name, .call = p->call, .threads = k->threads, .blocks = k->blocks, .shared_bytes = k->shared_bytes};
  if (went_wrong(d, d->driver->cuEventRecord(p->begins[p->n], d->stream), "timing a kernel") || start(d, k, parameters) ||
      went_wrong(d, d->driver->cuEventRecord(p->ends[p->n], d->stream), "timing a kernel"))
    return;
  describe(d, k, &p->launches[p->n++]);
}

void tilth_device_launch(const struct tilth_runtime *rt, struct tilth_device_kernel *k, void *const *pointers, int n) {
  struct tilth_device_runtime *d = (struct tilth_device_runtime *)rt;
  void *parameters[MOST_POINTERS + 1] = {NULL};
  struct driver_map maps[MOST_MAPS];
  if (d->failed != CUDA_SUCCESS) return;
  pthread_mutex_lock(&loading);
  int bad = k->functions[d->card] ? 0 : load(d, k);
  pthread_mutex_unlock(&loading);
  if (bad) return;
  for (int i = 0; i < n; i++) parameters[i] = (void *)&pointers[i];
  int first = n - k->n_boxes;
  if (encode(d, k, pointers + first, parameters + first, maps)) return;
  d->launches++;
  if (d->profile)
    start_profiled(d, k, parameters);
  else
    start(d, k, parameters);
}

static void call_own(struct tilth_device_runtime *d, tilth_card_kernel kernel, const char *name, void *const *args, void *workspace) {
  const struct tilth_card card = {d->stream, d->card, d->generation};
  pthread_mutex_lock(&loading);
  int status = kernel(&card, args, workspace);
  pthread_mutex_unlock(&loading);
  if (status == 0) return;
  d->failed = CUDA_ERROR_UNKNOWN, d->own_failed = 1;
  snprintf(d->refused, sizeof d->refused, "own kernel %s returns %d", name, status);
}

static void call_profiled(struct tilth_device_runtime *d, tilth_card_kernel kernel, const char *name, void *const *args, void *workspace) {
  struct tilth_device_profile *p = d->profile;
  if (p->n == p->most) return;
  p->launches[p->n] = (struct tilth_launch){.kernel = name, .call = p->call};
  if (went_wrong(d, d->driver->cuEventRecord(p->begins[p->n], d->stream), "timing a kernel")) return;
  call_own(d, kernel, name, args, workspace);
  if (d->failed == CUDA_SUCCESS) went_wrong(d, d->driver->cuEventRecord(p->ends[p->n++], d->stream), "timing a kernel");
}

void tilth_device_own(const struct tilth_runtime *rt, tilth_card_kernel kernel, const char *name, void *const *args, void *workspace) {
  struct tilth_device_runtime *d = (struct tilth_device_runtime *)rt;
  if (d->failed != CUDA_SUCCESS) return;
  d->launches++;
  if (d->profile)
    call_profiled(d, kernel, name, args, workspace);
  else
    call_own(d, kernel, name, args, workspace);
}

void tilth_device_unload(const struct driver *d, int card) {
  pthread_mutex_lock(&loading);
  for (struct tilth_device_kernel *k = listed; k; k = k->next) {
    CUmodule *module = &k->code->modules[card];
    if (*module) d->cuModuleUnload(*module);
    *module = NULL, k->functions[card] = NULL;
  }
  pthread_mutex_unlock(&loading);
}
