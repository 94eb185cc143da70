/* The contract between generated kernels and whoever calls them: the measuring harness and compiled packages.
 * Arguments come in the workload's order: inputs, constants, outputs. All buffers are 64-byte aligned, but for inputs and
 * outputs that have strides: those are parts of larger tensors, aligned to their elements. A kernel leaves the gaps between
 * an output's elements as they are. */
#ifndef TILTH_KERNEL_H
#define TILTH_KERNEL_H
#include <stdint.h>

#define TILTH_ABI 7

/* Kernels for a range of extents are timed at so many points, the last one the largest. */
#define TILTH_POINTS 4

/* A parallel loop's body: runs iterations begin <= i < end as worker number `worker`, 0 <= worker < workers. */
typedef void (*tilth_body)(void *closure, int64_t begin, int64_t end, int32_t worker);

struct tilth_runtime {
  int32_t workers;
  /* Runs body over [0, n), split over the workers, and returns when all of it is done. */
  void (*parallel)(const struct tilth_runtime *rt, tilth_body body, void *closure, int64_t n);
};

enum tilth_role { TILTH_INPUT = 0, TILTH_CONSTANT = 1, TILTH_OUTPUT = 2 };

enum tilth_dtype {
  TILTH_FLOAT32 = 1, TILTH_FLOAT64 = 2, TILTH_FLOAT16 = 3, TILTH_BFLOAT16 = 4,
  TILTH_INT8 = 5, TILTH_INT16 = 6, TILTH_INT32 = 7, TILTH_INT64 = 8,
  TILTH_UINT8 = 9, TILTH_UINT16 = 10, TILTH_UINT32 = 11, TILTH_UINT64 = 12, TILTH_BOOL = 13
};

struct tilth_arg {
  const char *name;
  int64_t elements, bytes; /* of memory: with the gaps of an argument that has strides */
  int32_t dtype; /* enum tilth_dtype */
  int32_t role;  /* enum tilth_role */
  /* Of an output: the largest |answer - reference| allowed, relative to its largest |reference|. The first is for sums, which a kernel's
   * algorithm may need a multiple of; the second for elements that are rounded to 16 bits. */
  double tolerance, rounding;
  /* Of an input that says how many elements there are along axes: what it says at each point at which kernels are timed, ending with the
   * most that it may say; 0 for others. */
  int64_t points[TILTH_POINTS];
};

/* A constant in the layout that kernels read. Kernels that want the same layout of a constant name the same pack. */
struct tilth_pack {
  int64_t bytes;
  void (*fill)(const struct tilth_runtime *rt, void *const *args, void *packed); /* on all workers; reads only one constant among args */
};

struct tilth_kernel {
  const char *id; /* trace digest in a candidate module, kernel name in a package */
  int32_t n_prepared;
  const struct tilth_pack *const *packs; /* one for each prepared buffer; NULL in a package, whose constants lie packed in a file */
  void (*run)(const struct tilth_runtime *rt, void *const *args, void *const *prepared, void *workspace);
  int64_t workspace_bytes; /* scratch shared by all workers */
  int64_t worker_bytes;    /* scratch of each worker, behind the shared part */
  double error_growth;     /* how many times the tolerance of outputs its algorithm needs; less than 1 means 1 */
};

struct tilth_module {
  int32_t abi; /* TILTH_ABI */
  int32_t n_args;
  const struct tilth_arg *args;
  int32_t n_kernels;
  const struct tilth_kernel *kernels;
};

/* Exported by every object of candidates and every reference object. */
extern const struct tilth_module tilth_module;

#endif
