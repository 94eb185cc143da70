/* The driver of NVIDIA's GPUs, found when a program runs: nothing is linked with it, and no header of its vendor is needed. Names, types and
 * numbers are those of the driver's interface as its documentation has them. */
#ifndef TILTH_DRIVER_H
#define TILTH_DRIVER_H
#include <stddef.h>
#include <stdint.h>

#include "tensormap.h"

typedef int32_t CUresult, CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef uint64_t CUdeviceptr;
typedef struct { unsigned char bytes[16]; } CUuuid;

typedef struct { uint64_t bits[16]; } __attribute__((aligned(64))) CUtensorMap;

enum { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_NOT_SUPPORTED = 801, CUDA_ERROR_UNKNOWN = 999 };

enum { CU_CAPTURE_THREAD_LOCAL = 1 };

/* Attributes of a kernel. */
enum { CU_FUNC_SHARED_BYTES = 1, CU_FUNC_LOCAL_BYTES = 3, CU_FUNC_REGISTERS = 4, CU_FUNC_MAX_DYNAMIC_SHARED_BYTES = 8 };

/* Options of cuModuleLoadDataEx. */
enum { CU_JIT_ERROR_LOG = 5, CU_JIT_ERROR_LOG_BYTES = 6 };

/* Attributes of a device. */
enum {
  CU_BLOCK_THREADS = 1, CU_WARP_THREADS = 10, CU_MULTIPROCESSORS = 16, CU_L2_BYTES = 38, CU_MULTIPROCESSOR_THREADS = 39,
  CU_COMPUTE_MAJOR = 75, CU_COMPUTE_MINOR = 76, CU_MULTIPROCESSOR_SHARED_BYTES = 81, CU_MULTIPROCESSOR_REGISTERS = 82, CU_BLOCK_SHARED_BYTES = 97
};

/* Types of elements of a tensor map, how its boxes are swizzled, and how much of them is brought into the second cache at
 * a time. */
enum { CU_MAP_UINT8 = 0, CU_MAP_UINT16 = 1, CU_MAP_UINT32 = 2, CU_MAP_INT32 = 3, CU_MAP_FLOAT16 = 6, CU_MAP_FLOAT32 = 7, CU_MAP_BFLOAT16 = 9 };
enum { CU_SWIZZLE_32 = 1, CU_SWIZZLE_64 = 2, CU_SWIZZLE_128 = 3 };
enum { CU_PROMOTE_128 = 2 };

/* Every function that is used: its name in the library, the version included, and its parameters. */
#define DRIVER_FUNCTIONS(F)                                                                                                    \
  F(cuInit, (unsigned flags))                                                                                                  \
  F(cuDriverGetVersion, (int *version))                                                                                        \
  F(cuDeviceGetCount, (int *n))                                                                                                \
  F(cuDeviceGet, (CUdevice *device, int ordinal))                                                                              \
  F(cuDeviceGetName, (char *name, int bytes, CUdevice device))                                                                 \
  F(cuDeviceGetUuid_v2, (CUuuid *uuid, CUdevice device))                                                                       \
  F(cuDeviceGetAttribute, (int *value, int attribute, CUdevice device))                                                        \
  F(cuDevicePrimaryCtxRetain, (CUcontext *context, CUdevice device))                                                           \
  F(cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                                                           \
  F(cuCtxGetDevice, (CUdevice *device))                                                                                        \
  F(cuCtxGetCurrent, (CUcontext *context))                                                                                     \
  F(cuCtxSetCurrent, (CUcontext context))                                                                                      \
  F(cuModuleLoadDataEx, (CUmodule *module, const void *image, unsigned n, int *options, void **values))                        \
  F(cuModuleUnload, (CUmodule module))                                                                                         \
  F(cuModuleGetFunction, (CUfunction *function, CUmodule module, const char *name))                                            \
  F(cuFuncGetAttribute, (int *value, int attribute, CUfunction function))                                                      \
  F(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *blocks, CUfunction function, int threads, size_t dynamic_shared_bytes)) \
  F(cuFuncSetAttribute, (CUfunction function, int attribute, int value))                                                       \
  F(cuLaunchKernel, (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
                     unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters, void **extra))               \
  F(cuMemGetInfo_v2, (size_t *unused, size_t *total))                                                                          \
  F(cuMemAlloc_v2, (CUdeviceptr *memory, size_t bytes))                                                                        \
  F(cuMemFree_v2, (CUdeviceptr memory))                                                                                        \
  F(cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))                                                             \
  F(cuMemFreeHost, (void *memory))                                                                                             \
  F(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes))                                                         \
  F(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes))                                                               \
  F(cuMemsetD8Async, (CUdeviceptr memory, unsigned char value, size_t bytes, CUstream stream))                                 \
  F(cuStreamCreate, (CUstream *stream, unsigned flags))                                                                        \
  F(cuStreamSynchronize, (CUstream stream))                                                                                    \
  F(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))                                   \
  F(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream))                                         \
  F(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                                   \
  F(cuStreamDestroy_v2, (CUstream stream))                                                                                     \
  F(cuStreamBeginCapture_v2, (CUstream stream, int mode))                                                                      \
  F(cuStreamEndCapture, (CUstream stream, CUgraph *graph))                                                                     \
  F(cuGraphInstantiateWithFlags, (CUgraphExec *run, CUgraph graph, unsigned long long flags))                                  \
  F(cuGraphLaunch, (CUgraphExec run, CUstream stream))                                                                         \
  F(cuGraphExecDestroy, (CUgraphExec run))                                                                                     \
  F(cuGraphDestroy, (CUgraph graph))                                                                                           \
  F(cuEventCreate, (CUevent *event, unsigned flags))                                                                           \
  F(cuEventDestroy_v2, (CUevent event))                                                                                        \
  F(cuEventRecord, (CUevent event, CUstream stream))                                                                           \
  F(cuEventSynchronize, (CUevent event))                                                                                       \
  F(cuEventElapsedTime, (float *milliseconds, CUevent begin, CUevent end))                                                     \
  F(cuGetErrorString, (CUresult result, const char **text))

/* Functions that only newer drivers have, and only their cards need. */
#define DRIVER_NEWER_FUNCTIONS(F)                                                                                              \
  F(cuTensorMapEncodeTiled, (CUtensorMap *map, int type, uint32_t n, void *address, const uint64_t *extents, const uint64_t *strides, \
                             const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill))

#define DRIVER_MEMBER(name, parameters) CUresult(*name) parameters;
struct driver {
  DRIVER_FUNCTIONS(DRIVER_MEMBER)
  DRIVER_NEWER_FUNCTIONS(DRIVER_MEMBER) /* NULL where there is none */
};
#undef DRIVER_MEMBER

/* Loads the library. On failure it returns -1, with a message. */
int driver_open(struct driver *d, const char *library, char *message, int message_bytes);

/* Loads code: what an assembler made for this very card, where that is given and the driver takes it, or else PTX, which the driver compiles. What
 * its compiler says of code that it refuses is put into `log`, which may be NULL. */
CUresult driver_load(const struct driver *d, CUmodule *module, const void *assembled, const char *ptx, char *log, int log_bytes);

/* A tensor map of what lies at an address. */
struct driver_map {
  CUtensorMap map;
  CUdeviceptr address;
};

/* Makes a tensor map, of which elements outside of the tensor are zero. */
CUresult driver_encode(const struct driver *d, const struct tilth_boxes *boxes, CUdeviceptr address, struct driver_map *m);

/* What a result means. */
const char *driver_error(const struct driver *d, CUresult result);

#endif
