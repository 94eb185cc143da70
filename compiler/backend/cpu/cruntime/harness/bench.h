/* The data of a workload, and running kernels on it. */
#ifndef TILTH_BENCH_H
#define TILTH_BENCH_H
#include "buffer.h"
#include "options.h"
#include "report.h"
#include "tilth_kernel.h"

enum { MOST_ARGS = 256, MOST_PREPARED = 256, MOST_SAMPLES_KEPT = 64 };

/* Everything the kernels of one workload share. */
struct bench {
  const struct options *options;
  const struct tilth_runtime *runtime;
  int32_t n_args;
  struct tilth_arg args[MOST_ARGS]; /* copies: a kernel cannot spoil them from its own object */
  struct buffer buffers[MOST_ARGS];
  void *pointers[MOST_ARGS];
  uint64_t filled;    /* the seed of the inputs' data */
  uint64_t disturbed; /* chooses the elements that were spoilt last */
  unsigned char spoilt[MOST_ARGS][8]; /* what they became */
};

/* A place for a packed constant, one after the other. They share it as kernels do their scratch memory; besides, new memory takes
 * longer to get than many a constant takes to pack. */
struct prepared {
  const struct tilth_pack *pack; /* what the buffer holds; NULL = nothing */
  struct buffer buffer;          /* the end of the room */
  struct buffer room;
  int64_t most; /* bytes that the room has at least once it is opened */
};

/* A kernel with its buffers. Packed constants stay for the next kernel, which may want the same. */
struct loaded {
  const struct tilth_kernel *kernel;
  struct prepared prepared[MOST_PREPARED];
  void *prepared_pointers[MOST_PREPARED];
  struct buffer workspace;
};

/* All functions below return 0 on success; otherwise a message was reported. */

/* Allocates the arguments and fills constants. These and the inputs are read-only from then on. */
int bench_open(struct bench *b, const struct options *o, const struct tilth_runtime *rt, const struct tilth_module *reference);

/* Gives back what bench_open took. `b` is all zero afterwards. */
void bench_close(struct bench *b);

/* Checks that a module takes the same arguments. */
int bench_matches(const struct bench *b, const struct tilth_module *module);

/* Fills the inputs with data of a seed, on all workers, unless they have those. */
void bench_fill(struct bench *b, uint64_t seed);

/* Warms the caches as in a model and during sampling: inputs in those of all workers, and the poisoned outputs in that of the worker that is
 * likely to write them. */
void bench_warm(struct bench *b);

/* Spoils an element of each output, another one each time: a kernel that leaves it as it is, since its results were there already, is
 * wrong. */
void bench_disturb(struct bench *b);

/* Whether one of the elements that were spoilt last still is what it became. */
int bench_disturbed(const struct bench *b);

/* How many bytes of scratch memory the kernel asks for. */
int64_t bench_workspace(const struct bench *b, const struct tilth_kernel *kernel);

/* Opens the scratch memory that kernels share, as large as the largest of those wants it that want no more than `limit` bytes. They
 * share it as in a model: how fast a kernel is depends by up to a quarter on which pages of memory it was given. A device has its own. */
int bench_reserve(const struct bench *b, struct buffer *scratch, const struct tilth_kernel *const *kernels, int32_t n, int64_t limit);

/* Makes the rooms for packed constants as large as the largest of those of the kernels, but for what is larger than `limit` bytes. */
void bench_expect(struct loaded *l, const struct tilth_kernel *const *kernels, int32_t n, int64_t limit);

/* Gives the kernel its part of the scratch memory, which is replaced when it is too small, and packs its constants, but those that the
 * kernel loaded before had packed alike. `l` is all zero before the first. */
int bench_load(struct bench *b, struct loaded *l, const struct tilth_kernel *kernel, struct buffer *scratch);

/* How many bytes the kernel's packed constants have. */
int64_t bench_packed(const struct tilth_kernel *kernel);

/* Gives back the rooms of packed constants. `l` is all zero afterwards. */
void bench_unload(struct loaded *l);

/* Puts the constants that the kernel reads out of the caches. All workers take part, so that they are awake afterwards, as they
 * are between the kernels of a model: waking a sleeping processor can take longer than a kernel. */
void bench_flush(const struct bench *b, const struct loaded *l);

/* The first of the points, which are followed by all others, at which kernels are run. */
int32_t bench_first(const struct bench *b);

/* Sets the inputs that say how many elements there are along axes. */
void bench_point(struct bench *b, int32_t p);

/* Runs once and returns the seconds it took. */
double bench_once(const struct bench *b, const struct loaded *l);

/* Runs at each point and returns the average. */
double bench_run(struct bench *b, const struct loaded *l);

/* Whether reading past the end of packed constants and scratch memory faults, or finds zeros, as prefetches should. */
void bench_hide_ends(struct loaded *l);
void bench_show_ends(struct loaded *l);

/* Fills the outputs so that elements that are not written show. */
void bench_poison(struct bench *b);

/* Brings the outputs of kernels that run on a device of their own. */
void bench_collect(const struct bench *b);

/* Looks at the canaries and has the judge compare the outputs of kernel `index`. Returns "ok", "overrun", with a message, or "wrong". The
 * inputs may be others afterwards. */
const char *bench_verify(struct bench *b, const struct loaded *l, int32_t index, char *message, int message_bytes);

/* Returns the buffer that contains an address, for messages, or NULL. `l` may be NULL. */
const struct buffer *bench_find(const struct bench *b, const struct loaded *l, const void *address, int64_t *offset);

double seconds_now(void);

#endif
