/* How kernels of a package are started on an OpenCL device. */
#ifndef TILTH_LAUNCH_H
#define TILTH_LAUNCH_H
#include "opencl.h"
#include "devicecode.h"
#include "tilth_kernel.h"

/* The code of a translation unit; its text is compiled when a model is opened. */
struct tilth_device_code {
  const char *parts; /* aligned to 16 bytes */
  cl_program program;
};

/* A kernel in such a text. */
struct tilth_device_kernel {
  struct tilth_device_code *code;
  const char *name;
  int64_t blocks;
  int32_t threads, shared_bytes;
  cl_kernel kernel;
};

/* OpenCL knows buffers and no addresses. The functions of a plan get these for the beginning of the arena and of the weights; nothing is there. */
#define ARENA_ADDRESS UINT64_C(0x100000000000)
#define WEIGHTS_ADDRESS UINT64_C(0x200000000000)

/* What kernels get. The functions of a plan pass it on. */
struct tilth_device_runtime {
  struct tilth_runtime runtime; /* the first member: a pointer to it is one to all */
  struct opencl_device device;  /* with the context of all models and a queue of this one's */
  cl_mem arena, weights;
  cl_event first, last; /* kernels of this run */
  int waits;            /* whether each kernel is waited for, and the seconds that it took are added up */
  double seconds;
  int32_t failed;       /* the first error, after which nothing is started */
  const char *step;     /* at which it happened */
  char message[512];    /* what the compiler says */
};

/* Forgets the kernels of the last run. */
__attribute__((visibility("hidden"))) void tilth_device_begin(struct tilth_device_runtime *d);

/* Starts a kernel with addresses as above. */
__attribute__((visibility("hidden"))) void tilth_device_launch(const struct tilth_runtime *rt, struct tilth_device_kernel *k, void *const *pointers, int n);

#endif
