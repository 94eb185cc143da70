/* Candidates that run on an OpenCL device. The first error of a device ends the process: what it is worth afterwards, each driver decides for
 * itself. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "fault.h"
#include "fence.h"
#include "image.h"
#include "opencl.h"
#include "rates.h"
#include "report.h"

/* Times are whole numbers of something like this, in seconds. */
#define TICK 1e-6
/* The most that is written to put a kernel's operands out of the caches. */
#define MOST_FLUSHED (INT64_C(256) << 20)

static struct {
  struct opencl api;
  struct opencl_device device;
  struct opencl_work work;
  cl_mem args[MOST_ARGS], workspace, flush;
  int64_t workspace_bytes, flush_bytes;
  int open;
  unsigned char turn;
} gpu;

/* Ends the process: the kernel that ran last is to blame. */
static void check_run(int32_t error, const char *step) {
  char text[256];
  if (error == CL_SUCCESS) return;
  snprintf(text, sizeof text, "%s: %s", step, opencl_error(error));
  fault_report(text);
}

static int fails(int32_t error, const char *step) {
  if (error == CL_SUCCESS) return 0;
  report_error("%s: %s", step, opencl_error(error));
  return -1;
}

static int32_t fill_memory(cl_mem memory, unsigned char value, int64_t at, int64_t bytes) {
  uint32_t pattern = value * UINT32_C(0x01010101);
  int64_t whole = bytes & ~INT64_C(3);
  int32_t error = CL_SUCCESS;
  if (at % 4 != 0 || whole == 0) return gpu.api.clEnqueueFillBuffer(gpu.device.queue, memory, &value, 1, (size_t)at, (size_t)bytes, 0, NULL, NULL);
  error = gpu.api.clEnqueueFillBuffer(gpu.device.queue, memory, &pattern, 4, (size_t)at, (size_t)whole, 0, NULL, NULL);
  if (error == CL_SUCCESS && whole < bytes)
    error = gpu.api.clEnqueueFillBuffer(gpu.device.queue, memory, &value, 1, (size_t)(at + whole), (size_t)(bytes - whole), 0, NULL, NULL);
  return error;
}

/* Memory with a fence behind it. */
static int allocate(cl_mem *memory, int64_t bytes, const char *what) {
  int32_t error;
  *memory = gpu.api.clCreateBuffer(gpu.device.context, CL_READ_WRITE, (size_t)bytes + FENCE, NULL, &error);
  return fails(error, what) || fails(fill_memory(*memory, FENCE_VALUE, bytes, FENCE), what) ? -1 : 0;
}

static int32_t write_arg(int32_t arg, const void *from, int64_t at, int64_t bytes) {
  return gpu.api.clEnqueueWriteBuffer(gpu.device.queue, gpu.args[arg], 1, (size_t)at, (size_t)bytes, from, 0, NULL, NULL);
}

static int open_args(const struct bench *b) {
  for (int32_t k = 0; k < b->n_args; k++) {
    if (allocate(&gpu.args[k], b->args[k].bytes, "allocating an argument on the device")) return -1;
    if (b->args[k].bytes > 0 && fails(write_arg(k, b->pointers[k], 0, b->args[k].bytes), "copying an argument to the device")) return -1;
  }
  return 0;
}

static int open_flush(void) {
  int32_t error;
  gpu.flush_bytes = 2 * (int64_t)opencl_number(&gpu.device, CL_CACHE_BYTES);
  if (gpu.flush_bytes > MOST_FLUSHED) gpu.flush_bytes = MOST_FLUSHED;
  if (gpu.flush_bytes < FENCE) gpu.flush_bytes = FENCE;
  gpu.flush = gpu.api.clCreateBuffer(gpu.device.context, CL_READ_WRITE, (size_t)gpu.flush_bytes, NULL, &error);
  return fails(error, "allocating memory to flush the cache");
}

/* Drivers keep what they compile in files, which belong into a folder that goes away. They find programs by the usual path. */
static void choose_folders(const char *scratch) {
  static const char *const names[] = {"POCL_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "TMPDIR"};
  for (size_t k = 0; scratch && k < sizeof names / sizeof *names; k++) setenv(names[k], scratch, 1);
  setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 0);
}

int device_ready(const struct options *o) { return (void)o, 0; }

int device_open(const struct bench *b) {
  char message[512];
  const struct options *o = b->options;
  choose_folders(o->scratch);
  if (opencl_load(&gpu.api, o->driver ? o->driver : OPENCL_LIBRARY, message, sizeof message) ||
      opencl_find(&gpu.api, o->device, &gpu.device, message, sizeof message) || opencl_open(&gpu.device, message, sizeof message) ||
      opencl_work_open(&gpu.device, &gpu.work, message, sizeof message)) {
    report_error("%s", message);
    return -1;
  }
  if (open_flush() || open_args(b)) return -1;
  gpu.open = 1;
  return 0;
}

int device_is_open(void) { return gpu.open; }

static void find_functions(struct image *i, cl_program program) {
  for (int32_t k = 0; k < i->module.n_kernels; k++)
    for (int32_t n = 0; n < i->kernels[k].n_launches; n++) {
      int32_t error;
      i->kernels[k].launches[n].function = gpu.api.clCreateKernel(program, i->kernels[k].launches[n].entry, &error);
      check_run(error, "finding a kernel");
    }
}

const struct tilth_module *device_module(const char *path) {
  char message[512], text[640];
  struct image *i = image_read(path, message, sizeof message);
  if (!i || image_keep(i)) {
    report_error("loading kernels: %s", i ? "there are too many files" : message);
    return NULL;
  }
  cl_program program = opencl_build(&gpu.device, i->code, message, sizeof message);
  if (!program) {
    snprintf(text, sizeof text, "the driver refuses its code: %s", message);
    fault_report(text);
  }
  find_functions(i, program);
  return &i->module;
}

void device_give(const struct bench *b, int32_t arg, int64_t at, int64_t bytes) {
  if (bytes > 0) check_run(write_arg(arg, (const char *)b->pointers[arg] + at, at, bytes), "copying to the device");
}

static int32_t read_memory(cl_mem memory, void *to, int64_t at, int64_t bytes) {
  return gpu.api.clEnqueueReadBuffer(gpu.device.queue, memory, 1, (size_t)at, (size_t)bytes, to, 0, NULL, NULL);
}

void device_take(const struct bench *b, int32_t arg, int64_t at, int64_t bytes) {
  if (bytes > 0) check_run(read_memory(gpu.args[arg], (char *)b->pointers[arg] + at, at, bytes), "copying from the device");
}

int device_load(const struct bench *b, const struct loaded *l) {
  int64_t bytes = l->kernel->workspace_bytes;
  (void)b;
  if (bytes > gpu.workspace_bytes || !gpu.workspace) {
    if (gpu.workspace && fails(gpu.api.clReleaseMemObject(gpu.workspace), "freeing the workspace")) return -1;
    if (allocate(&gpu.workspace, bytes, "allocating the workspace on the device")) return -1;
    gpu.workspace_bytes = bytes;
  }
  return bytes > 0 ? fails(fill_memory(gpu.workspace, POISON, 0, bytes), "filling the workspace") : 0;
}

static cl_event start_launch(const struct image_launch *l) {
  cl_event event;
  for (int32_t k = 0; k < l->n_parameters; k++) {
    const struct image_parameter *p = &l->parameters[k];
    if (p->boxes) fault_report("it copies boxes by tensor maps, which OpenCL has not");
    cl_mem memory = p->arg >= 0 ? gpu.args[p->arg] : gpu.workspace;
    check_run(opencl_parameter(&gpu.api, l->function, k, memory, p->arg >= 0 ? 0 : (uint64_t)p->offset), "giving a kernel its arguments");
  }
  check_run(opencl_launch(&gpu.device, l->function, l->blocks, l->threads, &event), "launching a kernel");
  return event;
}

double device_run(const struct bench *b, const struct loaded *l) {
  const struct image_kernel *k = image_kernel_of(l->kernel);
  cl_event first = NULL, last = NULL;
  (void)b;
  for (int32_t n = 0; n < k->n_launches; n++) {
    if (last && last != first) gpu.api.clReleaseEvent(last);
    last = start_launch(&k->launches[n]);
    first = first ? first : last;
  }
  if (!last) return TICK / 2;
  check_run(gpu.api.clWaitForEvents(1, &last), "running a kernel");
  double seconds = opencl_seconds(&gpu.api, first, last);
  if (first != last) gpu.api.clReleaseEvent(first);
  gpu.api.clReleaseEvent(last);
  if (seconds < 0) fault_report("timing a kernel: the driver does not say how long it ran");
  return fmax(seconds, TICK / 2);
}

/* What was written last fills the cache. */
void device_flush(const struct bench *b, const struct loaded *l) {
  (void)b, (void)l;
  check_run(fill_memory(gpu.flush, gpu.turn++, 0, gpu.flush_bytes), "flushing the cache");
  check_run(gpu.api.clFinish(gpu.device.queue), "flushing the cache");
}

static int past_end(cl_mem memory, int64_t end, const char *name, char *message, int message_bytes) {
  unsigned char fence[FENCE];
  check_run(read_memory(memory, fence, end, FENCE), "copying from the device");
  return fence_spoilt(fence, name, message, message_bytes);
}

int device_overrun(const struct bench *b, const struct loaded *l, char *message, int message_bytes) {
  (void)l;
  for (int32_t k = 0; k < b->n_args; k++)
    if (past_end(gpu.args[k], b->args[k].bytes, b->args[k].name, message, message_bytes)) return -1;
  return past_end(gpu.workspace, gpu.workspace_bytes, "workspace", message, message_bytes);
}

double device_calibrate(void) {
  double seconds = opencl_work_do(&gpu.device, &gpu.work);
  if (seconds < 0) fault_report("calibrating the device: the driver does not say how long it took");
  return fmax(seconds, TICK / 2);
}

/* No process serves several workloads: what the driver compiles in it, it keeps. */
void device_close(const struct bench *b) { (void)b; }
