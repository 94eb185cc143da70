/* The C interface of a compiled model. docs/c.md has examples.
 *
 * A package (PKG.tar) holds model.so, weights.bin, manifest.json and this file. Link model.so, or load it with dlopen:
 *
 *     struct tilth_model *m = tilth_open("weights.bin", 0);
 *     if (!m) { fprintf(stderr, "%s\n", tilth_last_error()); exit(1); }
 *     memcpy(tilth_input(m, 0), image, tilth_input_tensor(0)->bytes);
 *     tilth_run(m);
 *     const float *scores = tilth_output(m, 0);
 *     tilth_close(m);
 *
 * Every package has these functions under these names. A program that is linked with several packages cannot tell them
 * apart by name: it calls them through struct tilth_api, which each package returns from a function of its own name.
 *
 * Threads: any thread may call any function at any time, but tilth_close, which must be the last call on its model.
 * Calls on one model wait for each other; calls on different models run side by side. Threads that share a model must
 * hold tilth_lock from the first input until the last output. A child made by fork must not use its parent's models.
 *
 * Versions: functions, and members at the end of tilth_options, tilth_api and tilth_device_api, are added and never
 * changed. */
#ifndef TILTH_H
#define TILTH_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum tilth_type {
  TILTH_TYPE_FLOAT32 = 1, TILTH_TYPE_FLOAT64 = 2, TILTH_TYPE_FLOAT16 = 3, TILTH_TYPE_BFLOAT16 = 4,
  TILTH_TYPE_INT8 = 5, TILTH_TYPE_INT16 = 6, TILTH_TYPE_INT32 = 7, TILTH_TYPE_INT64 = 8,
  TILTH_TYPE_UINT8 = 9, TILTH_TYPE_UINT16 = 10, TILTH_TYPE_UINT32 = 11, TILTH_TYPE_UINT64 = 12, TILTH_TYPE_BOOL = 13
};

/* An input or an output: row-major, little-endian. */
struct tilth_tensor {
  const char *name;
  int32_t type; /* enum tilth_type */
  int32_t rank;
  const int64_t *shape;
  int64_t bytes;
};

struct tilth_model;

/* Options of tilth_open_with. All zeros, except for the size, is the behaviour of tilth_open. */
struct tilth_options {
  int64_t size; /* sizeof(struct tilth_options) */
  /* How many threads run the model, the caller's included: at most as many as it was compiled for, which are the
   * default, or as there are cpus if those are fewer. Outputs do not depend on it. Packages for GPUs pass over it. */
  int32_t threads;
  /* The processors that the threads may run on, by the system's numbers; none = wherever the program may. The caller's
   * thread is moved there for as long as it runs the model. The list is read by tilth_open_with only. */
  int32_t n_cpus;
  const int32_t *cpus;
#if UINTPTR_MAX < UINT64_MAX
  int32_t reserved; /* 0: no room is left that a later member could be taken from */
#endif
};

/* Opens the model with its weights, which lie in the file `weights` from byte `offset` on: 0 in weights.bin, or the
 * place of weights.bin within the package, a multiple of 512. Starts the threads that the model was compiled for. NULL
 * on failure, with the reason in tilth_last_error(). */
struct tilth_model *tilth_open(const char *weights, int64_t offset);

/* Like tilth_open, with options; NULL means the defaults. */
struct tilth_model *tilth_open_with(const char *weights, int64_t offset, const struct tilth_options *options);

/* Ends the threads and frees the memory. NULL is allowed. */
void tilth_close(struct tilth_model *model);

/* Keeps other threads from the model until tilth_unlock. A thread may hold it several times, and unlocks it as
 * often. */
void tilth_lock(struct tilth_model *model);
void tilth_unlock(struct tilth_model *model);

/* How many threads run the model. */
int32_t tilth_threads(const struct tilth_model *model);

/* What went wrong in this thread's last call of tilth_open, tilth_open_with, or a function that runs the model; empty
 * when nothing did. It stays until this thread's next such call. */
const char *tilth_last_error(void);

int32_t tilth_input_count(void);
int32_t tilth_output_count(void);

/* NULL when the index is out of range. */
const struct tilth_tensor *tilth_input_tensor(int32_t index);
const struct tilth_tensor *tilth_output_tensor(int32_t index);

/* Where to write an input. Its content is kept over runs. NULL when the index is out of range. */
void *tilth_input(struct tilth_model *model, int32_t index);

/* Where the last run left an output; the next run overwrites it. NULL when the index is out of range. */
const void *tilth_output(const struct tilth_model *model, int32_t index);

/* Extents that each run chooses, such as the length of a sequence, within bounds; none in most packages. The inputs
 * have the shapes of tilth_input_shape, and their elements lie in memory as in a tensor of the largest shape, that of
 * tilth_input_tensor. An extent stays until it is set again, and is the most at first. tilth_extent_name is NULL, the
 * others return -1, when the index is out of range; tilth_set_extent returns -1, too, when n is out of bounds or
 * between the steps that the model was compiled for, and 0 on success. */
int32_t tilth_extent_count(void);
const char *tilth_extent_name(int32_t index);
int tilth_extent_bounds(int32_t index, int64_t *least, int64_t *most);
int tilth_set_extent(struct tilth_model *model, int32_t index, int64_t n);
int tilth_input_shape(const struct tilth_model *model, int32_t index, int64_t *shape);

/* The shape that the last run gave an output, which has as many extents as the rank of its tensor. It differs from the
 * tensor's shape where an extent is chosen by tilth_set_extent, or depends on data, as behind NonMaxSuppression: there
 * the tensor has the most that it can be. Elements lie in memory as in a tensor of that largest shape; what is beyond
 * the extent means nothing. 0 on success, -1 when the index is out of range. */
int tilth_output_shape(const struct tilth_model *model, int32_t index, int64_t *shape);

/* Computes the outputs from the inputs. On failure the outputs mean nothing, and the reason is in tilth_last_error():
 * an input has an index out of range, or a GPU failed. */
void tilth_run(struct tilth_model *model);

/* Decoders, whose outputs continue inputs: the keys and values of all positions do those of the positions before.
 * Input and output are one piece of memory, which persists between runs and is never copied. tilth_prefill runs on the first
 * n positions, tilth_decode on the n that follow those of the last run, one at a time mostly: both choose the extents
 * of positions, and want only the other inputs written before, at the beginning of their memory. 0 on success; -1 when
 * the model is no decoder, has no room for so many, or fails to run, with the reason in tilth_last_error(). */
int tilth_prefill(struct tilth_model *model, int64_t n);
int tilth_decode(struct tilth_model *model, int64_t n);

/* Runs once and stores the seconds that each kernel call took, tilth_call_count() of them; -1 for calls that the run
 * did not need. */
void tilth_profile(struct tilth_model *model, double *seconds);
int32_t tilth_call_count(void);

/* The model's nodes that a call computes. NULL when the index is out of range. */
const char *tilth_call_name(int32_t index);

/* Measures what the machine can do at best on the model's threads, to compare a profile with: float32 operations a
 * second of fused multiply-adds, and bytes a second read from memory. 0 for what could not be measured. Takes a tenth
 * of a second or so, and 128 MiB of memory. */
void tilth_peak(struct tilth_model *model, double *flops, double *bytes);

/* The operations a second of sums of products of 8-bit integers (of 16-bit ones where there is no instruction for
 * those) on the model's threads, a multiplication and an addition counting as two; 0 where there is no instruction for
 * them. */
double tilth_integer_peak(struct tilth_model *model);

/* In packages for GPUs only: runs on inputs and outputs that lie in the GPU's memory, one pointer each, as part of a
 * stream of the caller's (a CUstream), in the GPU's primary context. It returns at once; what the pointers point to
 * must stay until the stream has come so far. Indices in inputs are clamped, not checked. 0 on success; otherwise the
 * reason is in tilth_last_error(). */
int tilth_run_on_device(struct tilth_model *model, const void *const *inputs, void *const *outputs, void *stream);

/* In packages for GPUs only: the seconds that the GPU took for the last tilth_run, without copies of inputs and
 * outputs. */
double tilth_device_seconds(struct tilth_model *model);

/* In packages for NVIDIA's GPUs only: the operations a second of the GPU's instructions for products of matrices, in a
 * format: 0 TF32, 1 bfloat16, 2 float16, 3 int8, of a warp; 4 to 7 the same of a warpgroup. 0 if the GPU lacks them
 * or their rate could not be measured. */
double tilth_matrices_peak(struct tilth_model *model, int32_t format);

/* What a launch of a kernel took of a GPU. */
struct tilth_launch {
  const char *kernel;
  int32_t call; /* the kernel call that it is a part of */
  int32_t threads; /* of a block */
  int64_t blocks;
  int64_t shared_bytes; /* of a block */
  int32_t registers, spilled_bytes; /* of a thread; what is spilled lies in memory */
  double occupancy; /* how many threads a multiprocessor has at most, of those that it has room for */
  double seconds;
};

/* In packages for NVIDIA's GPUs only: the launches of the last tilth_profile, n of them. They are the model's, until
 * the next tilth_profile. */
const struct tilth_launch *tilth_profile_launches(struct tilth_model *model, int32_t *n);

/* Functions of packages for GPUs, without the prefix tilth_. */
struct tilth_device_api {
  int64_t size; /* in bytes; what lies beyond is of a later version */
  int (*run_on_device)(struct tilth_model *model, const void *const *inputs, void *const *outputs, void *stream);
  double (*device_seconds)(struct tilth_model *model);
  double (*matrices_peak)(struct tilth_model *model, int32_t format);                        /* NULL for OpenCL */
  const struct tilth_launch *(*profile_launches)(struct tilth_model *model, int32_t *n);     /* NULL for OpenCL */
};

/* The functions of one package, without the prefix tilth_. */
struct tilth_api {
  int64_t size; /* in bytes; what lies beyond is of a later version */
  struct tilth_model *(*open)(const char *weights, int64_t offset);
  struct tilth_model *(*open_with)(const char *weights, int64_t offset, const struct tilth_options *options);
  void (*close)(struct tilth_model *model);
  void (*lock)(struct tilth_model *model);
  void (*unlock)(struct tilth_model *model);
  int32_t (*threads)(const struct tilth_model *model);
  const char *(*last_error)(void);
  int32_t (*input_count)(void);
  int32_t (*output_count)(void);
  const struct tilth_tensor *(*input_tensor)(int32_t index);
  const struct tilth_tensor *(*output_tensor)(int32_t index);
  void *(*input)(struct tilth_model *model, int32_t index);
  const void *(*output)(const struct tilth_model *model, int32_t index);
  int32_t (*extent_count)(void);
  const char *(*extent_name)(int32_t index);
  int (*extent_bounds)(int32_t index, int64_t *least, int64_t *most);
  int (*set_extent)(struct tilth_model *model, int32_t index, int64_t n);
  int (*input_shape)(const struct tilth_model *model, int32_t index, int64_t *shape);
  int (*output_shape)(const struct tilth_model *model, int32_t index, int64_t *shape);
  void (*run)(struct tilth_model *model);
  int (*prefill)(struct tilth_model *model, int64_t n);
  int (*decode)(struct tilth_model *model, int64_t n);
  void (*profile)(struct tilth_model *model, double *seconds);
  int32_t (*call_count)(void);
  const char *(*call_name)(int32_t index);
  void (*peak)(struct tilth_model *model, double *flops, double *bytes);
  double (*integer_peak)(struct tilth_model *model);
  const struct tilth_device_api *device; /* NULL in packages that run on the processor */
};

/* This package's functions. A package that was compiled with --prefix NAME returns them from NAME_api, too, which
 * NAME.h declares; its code is linked by -lNAME, for its shared object's name is libNAME.so. */
const struct tilth_api *tilth_api(void);

/* Whether a table, of struct tilth_api or struct tilth_device_api, has a function that later versions added. */
#define TILTH_HAS(api, function) \
  ((api)->size > (int64_t)((const char *)&(api)->function - (const char *)(api)) && (api)->function)

#ifdef __cplusplus
}
#endif
#endif
