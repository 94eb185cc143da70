/* OpenCL 1.2, found when a program runs: nothing is linked with it, and no header is needed. Names, types and numbers are those of its
 * specification. */
#ifndef TILTH_OPENCL_H
#define TILTH_OPENCL_H
#include <stddef.h>
#include <stdint.h>

typedef struct _cl_platform_id *cl_platform_id;
typedef struct _cl_device_id *cl_device_id;
typedef struct _cl_context *cl_context;
typedef struct _cl_command_queue *cl_command_queue;
typedef struct _cl_mem *cl_mem;
typedef struct _cl_program *cl_program;
typedef struct _cl_kernel *cl_kernel;
typedef struct _cl_event *cl_event;
typedef uint64_t cl_bits;

enum { CL_SUCCESS = 0, CL_BUILD_PROGRAM_FAILURE = -11 };

/* Types of devices. */
enum { CL_TYPE_CPU = 2, CL_TYPE_GPU = 4, CL_TYPE_ACCELERATOR = 8 };

/* What is asked of a platform and of a device. */
enum { CL_PLATFORM_NAME = 0x0902 };
enum {
  CL_TYPE = 0x1000, CL_COMPUTE_UNITS = 0x1002, CL_WORK_GROUP_SIZE = 0x1004, CL_CACHE_BYTES = 0x101E, CL_LOCAL_BYTES = 0x1023,
  CL_NAME = 0x102B, CL_DRIVER_VERSION = 0x102D, CL_VERSION = 0x102F, CL_EXTENSIONS = 0x1030
};

enum { CL_QUEUE_PROFILING = 2, CL_READ_WRITE = 1, CL_BUILD_LOG = 0x1183, CL_PROFILING_START = 0x1282, CL_PROFILING_END = 0x1283 };

/* Every function that is used, with what it returns and its parameters. Lists of events and of properties are not used. */
#define OPENCL_FUNCTIONS(F)                                                                                                              \
  F(int32_t, clGetPlatformIDs, (uint32_t most, cl_platform_id *all, uint32_t *n))                                                        \
  F(int32_t, clGetPlatformInfo, (cl_platform_id platform, uint32_t what, size_t bytes, void *value, size_t *needed))                     \
  F(int32_t, clGetDeviceIDs, (cl_platform_id platform, cl_bits type, uint32_t most, cl_device_id *all, uint32_t *n))                     \
  F(int32_t, clGetDeviceInfo, (cl_device_id device, uint32_t what, size_t bytes, void *value, size_t *needed))                           \
  F(cl_context, clCreateContext, (const intptr_t *properties, uint32_t n, const cl_device_id *devices, void *notify, void *user, int32_t *error)) \
  F(cl_command_queue, clCreateCommandQueue, (cl_context context, cl_device_id device, cl_bits properties, int32_t *error))               \
  F(int32_t, clReleaseCommandQueue, (cl_command_queue queue))                                                                            \
  F(cl_mem, clCreateBuffer, (cl_context context, cl_bits flags, size_t bytes, void *host, int32_t *error))                               \
  F(int32_t, clReleaseMemObject, (cl_mem memory))                                                                                        \
  F(int32_t, clEnqueueReadBuffer, (cl_command_queue queue, cl_mem memory, uint32_t wait, size_t at, size_t bytes, void *to, uint32_t n,   \
                                   const cl_event *after, cl_event *event))                                                              \
  F(int32_t, clEnqueueWriteBuffer, (cl_command_queue queue, cl_mem memory, uint32_t wait, size_t at, size_t bytes, const void *from,      \
                                    uint32_t n, const cl_event *after, cl_event *event))                                                 \
  F(int32_t, clEnqueueCopyBuffer, (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_at, size_t to_at, size_t bytes, uint32_t n, \
                                   const cl_event *after, cl_event *event))                                                              \
  F(int32_t, clEnqueueFillBuffer, (cl_command_queue queue, cl_mem memory, const void *pattern, size_t pattern_bytes, size_t at, size_t bytes, \
                                   uint32_t n, const cl_event *after, cl_event *event))                                                  \
  F(int32_t, clReleaseProgram, (cl_program program))                                                                                     \
  F(int32_t, clReleaseKernel, (cl_kernel kernel))                                                                                        \
  F(cl_program, clCreateProgramWithSource, (cl_context context, uint32_t n, const char **texts, const size_t *bytes, int32_t *error))    \
  F(int32_t, clBuildProgram, (cl_program program, uint32_t n, const cl_device_id *devices, const char *options, void *notify, void *user)) \
  F(int32_t, clGetProgramBuildInfo, (cl_program program, cl_device_id device, uint32_t what, size_t bytes, void *value, size_t *needed)) \
  F(cl_kernel, clCreateKernel, (cl_program program, const char *name, int32_t *error))                                                   \
  F(int32_t, clSetKernelArg, (cl_kernel kernel, uint32_t k, size_t bytes, const void *value))                                            \
  F(int32_t, clEnqueueNDRangeKernel, (cl_command_queue queue, cl_kernel kernel, uint32_t dimensions, const size_t *offset,               \
                                      const size_t *threads, const size_t *block, uint32_t n, const cl_event *after, cl_event *event))   \
  F(int32_t, clWaitForEvents, (uint32_t n, const cl_event *events))                                                                      \
  F(int32_t, clGetEventProfilingInfo, (cl_event event, uint32_t what, size_t bytes, void *value, size_t *needed))                        \
  F(int32_t, clReleaseEvent, (cl_event event))                                                                                           \
  F(int32_t, clFinish, (cl_command_queue queue))

#define OPENCL_MEMBER(result, name, parameters) result(*name) parameters;
struct opencl {
  OPENCL_FUNCTIONS(OPENCL_MEMBER)
};
#undef OPENCL_MEMBER

/* The default library, which dispatches to the vendors' implementations. */
#define OPENCL_LIBRARY "libOpenCL.so.1"

/* A device with a context and a queue of its own. */
struct opencl_device {
  const struct opencl *api;
  cl_platform_id platform;
  cl_device_id device;
  cl_context context;
  cl_command_queue queue;
};

/* Each of these returns 0, or -1 with a message. */

/* Loads the library. */
int opencl_load(struct opencl *api, const char *library, char *message, int message_bytes);

/* Finds a device by its number: all platforms' are counted, graphics processors and accelerators before others. */
int opencl_find(const struct opencl *api, int number, struct opencl_device *d, char *message, int message_bytes);

/* Makes the context and the queue. */
int opencl_open(struct opencl_device *d, char *message, int message_bytes);

/* Compiles a text; NULL stands for -1. */
cl_program opencl_build(const struct opencl_device *d, const char *text, char *message, int message_bytes);

/* The name of an error. */
const char *opencl_error(int32_t error);

/* A number that is asked of a device; 0 when it does not say. */
uint64_t opencl_number(const struct opencl_device *d, uint32_t what);

/* An array within memory, as a kernel's parameter k. */
int32_t opencl_parameter(const struct opencl *api, cl_kernel kernel, int k, cl_mem memory, uint64_t offset);

/* Starts a kernel. */
int32_t opencl_launch(const struct opencl_device *d, cl_kernel kernel, int64_t blocks, int64_t threads, cl_event *event);

/* Seconds from the start of a kernel to the end of a later one, once both have ended; less than 0 when the device does not say. */
double opencl_seconds(const struct opencl *api, cl_event first, cl_event last);

#endif
