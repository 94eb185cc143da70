#include "opencl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PLATFORMS = 16, MOST_DEVICES = 64 };

int opencl_load(struct opencl *api, const char *library, char *message, int message_bytes) {
  void *object = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!object) {
    snprintf(message, message_bytes, "no OpenCL: %s; install a driver of your device, and ocl-icd-libopencl1 or its like", dlerror());
    return -1;
  }
#define OPENCL_FIND(result, name, parameters)                                                     \
  if (!(api->name = (result(*) parameters)dlsym(object, #name))) {                                \
    snprintf(message, message_bytes, "%s has no %s, which OpenCL 1.2 has", library, #name);       \
    return -1;                                                                                    \
  }
  OPENCL_FUNCTIONS(OPENCL_FIND)
#undef OPENCL_FIND
  return 0;
}

static const struct { int32_t error; const char *name; } error_names[] = {
    {-1, "device not found"}, {-2, "device not available"}, {-3, "compiler not available"}, {-4, "out of device memory"}, {-5, "out of resources"},
    {-6, "out of host memory"}, {CL_BUILD_PROGRAM_FAILURE, "the program does not compile"}, {-14, "a command before it failed"}, {-30, "invalid value"},
    {-36, "the queue is lost"}, {-38, "invalid memory"}, {-46, "the program has no such kernel"}, {-52, "invalid arguments of a kernel"},
    {-54, "invalid size of a work-group"}, {-61, "invalid size of a buffer"}, {-1001, "no platform is installed"}};

const char *opencl_error(int32_t error) {
  static _Thread_local char number[32];
  for (size_t k = 0; k < sizeof error_names / sizeof *error_names; k++)
    if (error_names[k].error == error) return error_names[k].name;
  snprintf(number, sizeof number, "error %d of OpenCL", (int)error);
  return number;
}

static int opencl_fails(int32_t error, const char *step, char *message, int message_bytes) {
  if (error == CL_SUCCESS) return 0;
  snprintf(message, message_bytes, "%s: %s", step, opencl_error(error));
  return -1;
}

uint64_t opencl_number(const struct opencl_device *d, uint32_t what) {
  uint64_t value = 0; /* little-endian, whatever its size */
  return d->api->clGetDeviceInfo(d->device, what, sizeof value, &value, NULL) == CL_SUCCESS ? value : 0;
}

/* Finds device *left of a kind; others count it down. */
static int find_among(const struct opencl *api, const cl_platform_id *platforms, uint32_t n, cl_bits kind, int *left, struct opencl_device *d) {
  for (uint32_t p = 0; p < n; p++) {
    cl_device_id devices[MOST_DEVICES];
    uint32_t count = 0;
    if (api->clGetDeviceIDs(platforms[p], kind, MOST_DEVICES, devices, &count) != CL_SUCCESS) continue;
    for (uint32_t k = 0; k < count && k < MOST_DEVICES; k++)
      if ((*left)-- == 0) return *d = (struct opencl_device){.api = api, .platform = platforms[p], .device = devices[k]}, 1;
  }
  return 0;
}

int opencl_find(const struct opencl *api, int number, struct opencl_device *d, char *message, int message_bytes) {
  cl_platform_id platforms[MOST_PLATFORMS];
  uint32_t n = 0;
  int left = number;
  int32_t error = api->clGetPlatformIDs(MOST_PLATFORMS, platforms, &n);
  if (error == CL_SUCCESS && n == 0) error = -1001;
  if (opencl_fails(error, "finding OpenCL's platforms", message, message_bytes)) return -1;
  if (n > MOST_PLATFORMS) n = MOST_PLATFORMS;
  if (find_among(api, platforms, n, CL_TYPE_GPU | CL_TYPE_ACCELERATOR, &left, d) || find_among(api, platforms, n, CL_TYPE_CPU, &left, d)) return 0;
  snprintf(message, message_bytes, "there is no OpenCL device %d: this machine has %d", number, number - left);
  return -1;
}

int opencl_open(struct opencl_device *d, char *message, int message_bytes) {
  int32_t error;
  d->context = d->api->clCreateContext(NULL, 1, &d->device, NULL, NULL, &error);
  if (opencl_fails(error, "opening the OpenCL device", message, message_bytes)) return -1;
  d->queue = d->api->clCreateCommandQueue(d->context, d->device, CL_QUEUE_PROFILING, &error);
  return opencl_fails(error, "making a queue", message, message_bytes);
}

/* The end of what the compiler says. */
static void build_log(const struct opencl_device *d, cl_program program, int32_t error, char *message, int message_bytes) {
  size_t bytes = 0;
  char *log = NULL;
  if (d->api->clGetProgramBuildInfo(program, d->device, CL_BUILD_LOG, 0, NULL, &bytes) == CL_SUCCESS && bytes > 1) log = calloc(1, bytes + 1);
  if (log && d->api->clGetProgramBuildInfo(program, d->device, CL_BUILD_LOG, bytes, log, NULL) != CL_SUCCESS) log[0] = 0;
  snprintf(message, message_bytes, "%s. %.400s", opencl_error(error), log ? log : "");
  free(log);
}

/* PoCL 3.1 loses what is stored behind a loop with barriers that its optimiser has unrolled, so that it must not optimise before it has made a
 * function of a work-group. */
static const char *build_options(const struct opencl_device *d) {
  char name[256] = "";
  int is_pocl = d->api->clGetPlatformInfo(d->platform, CL_PLATFORM_NAME, sizeof name - 1, name, NULL) == CL_SUCCESS && !strcmp(name, "Portable Computing Language");
  return is_pocl ? "-cl-std=CL1.2 -w -cl-opt-disable" : "-cl-std=CL1.2 -w";
}

cl_program opencl_build(const struct opencl_device *d, const char *text, char *message, int message_bytes) {
  int32_t error;
  cl_program program = d->api->clCreateProgramWithSource(d->context, 1, &text, NULL, &error);
  if (opencl_fails(error, "loading kernels", message, message_bytes)) return NULL;
  error = d->api->clBuildProgram(program, 1, &d->device, build_options(d), NULL, NULL);
  if (error == CL_SUCCESS) return program;
  build_log(d, program, error, message, message_bytes);
  d->api->clReleaseProgram(program);
  return NULL;
}

int32_t opencl_parameter(const struct opencl *api, cl_kernel kernel, int k, cl_mem memory, uint64_t offset) {
  int32_t error = api->clSetKernelArg(kernel, (uint32_t)(2 * k), sizeof memory, &memory);
  return error == CL_SUCCESS ? api->clSetKernelArg(kernel, (uint32_t)(2 * k + 1), sizeof offset, &offset) : error;
}

int32_t opencl_launch(const struct opencl_device *d, cl_kernel kernel, int64_t blocks, int64_t threads, cl_event *event) {
  size_t all = (size_t)(blocks * threads), block = (size_t)threads;
  return d->api->clEnqueueNDRangeKernel(d->queue, kernel, 1, NULL, &all, &block, 0, NULL, event);
}

double opencl_seconds(const struct opencl *api, cl_event first, cl_event last) {
  uint64_t begin, end;
  if (api->clGetEventProfilingInfo(first, CL_PROFILING_START, sizeof begin, &begin, NULL) != CL_SUCCESS ||
      api->clGetEventProfilingInfo(last, CL_PROFILING_END, sizeof end, &end, NULL) != CL_SUCCESS || end < begin)
    return -1;
  return 1e-9 * (double)(end - begin);
}
