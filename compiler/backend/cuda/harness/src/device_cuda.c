/* Candidates that run on an NVIDIA GPU. Errors of a device stay until its process ends, so the first one ends it. What does not belong to a
 * workload stays for the next one. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibration.h"
#include "card.h"
#include "device.h"
#include "driver.h"
#include "fault.h"
#include "fence.h"
#include "hostcode.h"
#include "image.h"
#include "report.h"

/* Events are so many seconds apart at least when they are not at once. */
#define TICK 0.5e-6
/* Where the library of the driver is looked for unless --driver names it. */
#define DRIVER "libcuda.so.1"

static struct {
  struct driver api;
  CUstream stream;
  CUevent begin, end;
  CUdeviceptr args[MOST_ARGS], workspace, flush, sums;
  int64_t workspace_bytes, flush_bytes;
  CUfunction calibration;
  int ready, open, multiprocessors;
  unsigned char turn;
} gpu;

/* A part of the card's memory stays unused, as room for code, for stacks of threads, and for a process beside this one. */
#define UNUSED_PART 16
#define MIB(bytes) ((long long)((bytes) >> 20))

/* Bytes of the card's memory: what a process may have of it, what others left to this one when its workload began, and what it has taken. */
static struct {
  int64_t most, left, taken;
} room;

/* Ends the process: the kernel that ran last is to blame. */
static void check_run(CUresult result, const char *step) {
  char text[256];
  if (result == CUDA_SUCCESS) return;
  snprintf(text, sizeof text, "%s: %s", step, driver_error(&gpu.api, result));
  fault_report(text);
}

static int fails(CUresult result, const char *step) {
  if (result == CUDA_SUCCESS) return 0;
  report_error("%s: %s", step, driver_error(&gpu.api, result));
  return -1;
}

/* Memory with a fence behind it. */
static int allocate(CUdeviceptr *memory, int64_t bytes, const char *what) {
  if (fails(gpu.api.cuMemAlloc_v2(memory, bytes + FENCE), what)) return -1;
  room.taken += bytes + FENCE;
  return fails(gpu.api.cuMemsetD8Async(*memory + bytes, FENCE_VALUE, FENCE, gpu.stream), what);
}

/* What is not there for the arguments is the workload's fault if no process could have it, and otherwise that of others. */
static int args_fit(const struct bench *b) {
  int64_t bytes = room.taken;
  for (int32_t k = 0; k < b->n_args; k++) bytes += b->args[k].bytes + FENCE;
  if (bytes > room.most)
    report_too_large("the workload takes %lld MiB of the GPU's memory, and a process may have %lld MiB", MIB(bytes), MIB(room.most));
  else if (bytes > room.left)
    report_error("the workload takes %lld MiB of the GPU's memory, of which other programs leave %lld MiB: end them", MIB(bytes), MIB(room.left));
  return bytes <= room.left && bytes <= room.most;
}

static int open_args(const struct bench *b) {
  if (!args_fit(b)) return -1;
  for (int32_t k = 0; k < b->n_args; k++) {
    if (allocate(&gpu.args[k], b->args[k].bytes, "allocating an argument on the GPU")) return -1;
    if (b->args[k].bytes > 0 && fails(gpu.api.cuMemcpyHtoD_v2(gpu.args[k], b->pointers[k], b->args[k].bytes), "copying an argument to the GPU")) return -1;
  }
  return 0;
}

static int open_calibration(void) {
  CUmodule module;
  size_t bytes = sizeof(float) * CALIBRATION_THREADS * CALIBRATION_BLOCKS * (size_t)gpu.multiprocessors;
  room.taken += (int64_t)bytes;
  return fails(gpu.api.cuMemAlloc_v2(&gpu.sums, bytes), "allocating memory for the calibration") ||
                 fails(gpu.api.cuModuleLoadDataEx(&module, calibration_code, 0, NULL, NULL), "loading the calibration kernel") ||
                 fails(gpu.api.cuModuleGetFunction(&gpu.calibration, module, "tilth_calibration"), "loading the calibration kernel")
             ? -1
             : 0;
}

static int open_room(void) {
  size_t unused = 0, total = 0;
  if (fails(gpu.api.cuMemGetInfo_v2(&unused, &total), "asking for the GPU's memory")) return -1;
  int64_t spared = (int64_t)(total / UNUSED_PART), left = (int64_t)unused + room.taken;
  room.most = (int64_t)total - spared;
  room.left = left > spared ? left - spared : 0;
  return 0;
}

static int open_context(const struct options *o) {
  CUdevice device;
  CUcontext context;
  int n = 0, l2 = 0;
  if (fails(gpu.api.cuInit(0), "starting the driver") || fails(gpu.api.cuDeviceGetCount(&n), "counting GPUs")) return -1;
  if (o->device >= n) {
    report_error("there is no GPU %d: this machine has %d", o->device, n);
    return -1;
  }
  if (fails(gpu.api.cuDeviceGet(&device, o->device), "choosing a GPU") || fails(gpu.api.cuDevicePrimaryCtxRetain(&context, device), "opening the GPU") ||
      fails(gpu.api.cuCtxSetCurrent(context), "opening the GPU"))
    return -1;
  if (fails(gpu.api.cuDeviceGetAttribute(&l2, CU_L2_BYTES, device), "describing the GPU") ||
      fails(gpu.api.cuDeviceGetAttribute(&gpu.multiprocessors, CU_MULTIPROCESSORS, device), "describing the GPU"))
    return -1;
  gpu.flush_bytes = 2 * (int64_t)l2;
  return 0;
}

/* Opens what is the same for all workloads. */
static int open_common(void) {
  room.taken += gpu.flush_bytes;
  return fails(gpu.api.cuStreamCreate(&gpu.stream, 0), "making a stream") || fails(gpu.api.cuEventCreate(&gpu.begin, 0), "making an event") ||
                 fails(gpu.api.cuEventCreate(&gpu.end, 0), "making an event") ||
                 fails(gpu.api.cuMemAlloc_v2(&gpu.flush, gpu.flush_bytes), "allocating memory to flush the cache") || open_calibration()
             ? -1
             : 0;
}

int device_ready(const struct options *o) {
  char message[512];
  if (gpu.ready) return 0;
  const char *library = o->driver ? o->driver : DRIVER;
  setenv("CUDA_CACHE_DISABLE", "1", 1); /* it writes files */
  if (o->visible) setenv("CUDA_VISIBLE_DEVICES", o->visible, 1);
  if (driver_open(&gpu.api, library, message, sizeof message)) {
    report_error("%s", message);
    return -1;
  }
  if (open_context(o) || open_common()) return -1;
  device_calibrate(); /* the first time takes longer */
  gpu.ready = 1;
  return 0;
}

int device_open(const struct bench *b) {
  if (device_ready(b->options) || open_room() || open_args(b)) return -1;
  gpu.open = 1;
  return 0;
}

int device_is_open(void) { return gpu.open; }

static void find_functions(struct image *i, CUmodule module) {
  for (int32_t k = 0; k < i->module.n_kernels; k++)
    for (int32_t n = 0; n < i->kernels[k].n_launches; n++) {
      struct image_launch *l = &i->kernels[k].launches[n];
      CUfunction function;
      check_run(gpu.api.cuModuleGetFunction(&function, module, l->entry), "finding a kernel");
      if (l->shared_bytes > 0) check_run(gpu.api.cuFuncSetAttribute(function, CU_FUNC_MAX_DYNAMIC_SHARED_BYTES, (int)l->shared_bytes), "asking for shared memory");
      l->function = function;
    }
}

const struct tilth_module *device_module(const char *path) {
  char message[512], log[2048] = "";
  if (hostcode_is(path)) return hostcode_load(path);
  struct image *i = image_read(path, message, sizeof message);
  if (!i || image_keep(i)) {
    report_error("loading kernels: %s", i ? "there are too many files" : message);
    return NULL;
  }
  CUmodule module = NULL;
  CUresult result = driver_load(&gpu.api, &module, i->assembled, i->code, log, sizeof log);
  if (result != CUDA_SUCCESS) {
    snprintf(message, sizeof message, "the driver refuses its code: %s. %.400s", driver_error(&gpu.api, result), log);
    fault_report(message);
  }
  i->loaded = module;
  find_functions(i, module);
  return &i->module;
}

void device_give(const struct bench *b, int32_t arg, int64_t at, int64_t bytes) {
  if (bytes == 0) return;
  check_run(gpu.api.cuStreamSynchronize(gpu.stream), "before copying to the GPU");
  check_run(gpu.api.cuMemcpyHtoD_v2(gpu.args[arg] + at, (const char *)b->pointers[arg] + at, bytes), "copying to the GPU");
}

void device_take(const struct bench *b, int32_t arg, int64_t at, int64_t bytes) {
  if (bytes == 0) return;
  check_run(gpu.api.cuStreamSynchronize(gpu.stream), "before copying from the GPU");
  check_run(gpu.api.cuMemcpyDtoH_v2((char *)b->pointers[arg] + at, gpu.args[arg] + at, bytes), "copying from the GPU");
}

/* Gives memory back with nothing in it: what is allocated next in this process may be the same memory. */
static void give_back(CUdeviceptr *memory, int64_t bytes) {
  check_run(gpu.api.cuMemsetD8Async(*memory, POISON, bytes + FENCE, gpu.stream), "overwriting memory of the GPU");
  check_run(gpu.api.cuStreamSynchronize(gpu.stream), "overwriting memory of the GPU");
  check_run(gpu.api.cuMemFree_v2(*memory), "freeing memory of the GPU");
  room.taken -= bytes + FENCE;
  *memory = 0;
}

int device_load(const struct bench *b, const struct loaded *l) {
  int64_t bytes = l->kernel->workspace_bytes;
  (void)b;
  if (bytes > gpu.workspace_bytes || !gpu.workspace) {
    if (gpu.workspace) give_back(&gpu.workspace, gpu.workspace_bytes);
    if (bytes + FENCE > room.left - room.taken) {
      report_error("its scratch takes %lld MiB of the GPU's memory, of which %lld MiB are left", MIB(bytes), MIB(room.left - room.taken));
      return -1;
    }
    if (allocate(&gpu.workspace, bytes, "allocating the workspace on the GPU")) return -1;
    gpu.workspace_bytes = bytes;
  }
  return bytes > 0 ? fails(gpu.api.cuMemsetD8Async(gpu.workspace, POISON, bytes, gpu.stream), "filling the workspace") : 0;
}

/* The tensor map of a parameter, which is made anew where the workspace has moved. */
static void *map_of(struct image_parameter *p, CUdeviceptr address) {
  struct driver_map *m = p->map;
  if (m && m->address == address) return &m->map;
  if (!m && !(m = p->map = aligned_alloc(_Alignof(struct driver_map), sizeof *m))) fault_report("there is no memory for a tensor map");
  check_run(driver_encode(&gpu.api, p->boxes, address, m), "making a tensor map");
  return &m->map;
}

static void launch(const struct image_launch *l) {
  CUdeviceptr pointers[IMAGE_PARAMETERS];
  void *parameters[IMAGE_PARAMETERS + 1] = {NULL};
  for (int32_t k = 0; k < l->n_parameters; k++) {
    struct image_parameter *p = &l->parameters[k];
    pointers[k] = p->arg >= 0 ? gpu.args[p->arg] : gpu.workspace + (uint64_t)p->offset;
    parameters[k] = p->boxes ? map_of(p, pointers[k]) : &pointers[k];
  }
  check_run(gpu.api.cuLaunchKernel(l->function, (unsigned)l->blocks, 1, 1, (unsigned)l->threads, 1, 1, (unsigned)l->shared_bytes, gpu.stream, parameters, NULL),
            "launching a kernel");
}

static double elapsed(void) {
  float milliseconds = 0;
  check_run(gpu.api.cuEventSynchronize(gpu.end), "running a kernel");
  check_run(gpu.api.cuEventElapsedTime(&milliseconds, gpu.begin, gpu.end), "timing a kernel");
  return fmax(1e-3 * (double)milliseconds, TICK / 2);
}

/* Calls a user kernel. */
static void call(const struct bench *b, tilth_card_kernel kernel) {
  const struct tilth_card card = {gpu.stream, 0, 1}; /* the only one of this process */
  char text[128];
  void *args[MOST_ARGS];
  for (int32_t k = 0; k < b->n_args; k++) args[k] = (void *)gpu.args[k];
  int status = kernel(&card, args, (void *)gpu.workspace);
  if (status == 0) return;
  snprintf(text, sizeof text, "the kernel returns %d", status);
  fault_report(text);
}

double device_run(const struct bench *b, const struct loaded *l) {
  tilth_card_kernel written = hostcode_kernel_of(l->kernel);
  const struct image_kernel *k = written ? NULL : image_kernel_of(l->kernel);
  check_run(gpu.api.cuEventRecord(gpu.begin, gpu.stream), "timing a kernel");
  if (written) call(b, written);
  for (int32_t n = 0; k && n < k->n_launches; n++) launch(&k->launches[n]);
  check_run(gpu.api.cuEventRecord(gpu.end, gpu.stream), "timing a kernel");
  return elapsed();
}

/* What was written last fills the second cache. While it is written the launches behind it are put in, so that they follow at once. */
void device_flush(const struct bench *b, const struct loaded *l) {
  (void)b, (void)l;
  check_run(gpu.api.cuMemsetD8Async(gpu.flush, gpu.turn++, gpu.flush_bytes, gpu.stream), "flushing the cache");
}

static int past_end(CUdeviceptr end, const char *name, char *message, int message_bytes) {
  unsigned char fence[FENCE];
  check_run(gpu.api.cuMemcpyDtoH_v2(fence, end, FENCE), "copying from the GPU");
  return fence_spoilt(fence, name, message, message_bytes);
}

int device_overrun(const struct bench *b, const struct loaded *l, char *message, int message_bytes) {
  (void)l;
  check_run(gpu.api.cuStreamSynchronize(gpu.stream), "running a kernel");
  for (int32_t k = 0; k < b->n_args; k++)
    if (past_end(gpu.args[k] + (uint64_t)b->args[k].bytes, b->args[k].name, message, message_bytes)) return -1;
  return past_end(gpu.workspace + (uint64_t)gpu.workspace_bytes, "workspace", message, message_bytes);
}

double device_calibrate(void) {
  void *parameters[] = {&gpu.sums};
  check_run(gpu.api.cuEventRecord(gpu.begin, gpu.stream), "timing the calibration");
  check_run(gpu.api.cuLaunchKernel(gpu.calibration, CALIBRATION_BLOCKS * (unsigned)gpu.multiprocessors, 1, 1, CALIBRATION_THREADS, 1, 1, 0, gpu.stream, parameters, NULL),
            "launching the calibration");
  check_run(gpu.api.cuEventRecord(gpu.end, gpu.stream), "timing the calibration");
  return elapsed();
}

void device_close(const struct bench *b) {
  for (int32_t k = 0; k < b->n_args; k++) give_back(&gpu.args[k], b->args[k].bytes);
  if (gpu.workspace) give_back(&gpu.workspace, gpu.workspace_bytes);
  for (struct image *i; (i = image_take()); image_close(i)) check_run(gpu.api.cuModuleUnload(i->loaded), "unloading candidates");
  gpu.workspace_bytes = 0, gpu.open = 0;
}
