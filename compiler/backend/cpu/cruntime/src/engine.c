/* The part of a package for processors that is the same in all: memory, threads and running. */
#define _GNU_SOURCE
#include "engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "cpus.h"
#include "failure.h"
#include "peak.h"
#include "pool.h"
#include "tiles.h"
#include "weights.h"

#define HUGE_PAGE (2 << 20)

struct tilth_engine {
  struct tilth_pool *pool;
  struct tilth_cpus cpus;
  char *arena;
  struct tilth_weights weights;
};

/* Kernels that multiply tiles define it. */
extern TILTH_HIDDEN const char tilth_uses_tiles __attribute__((weak));

/* What runtimes that simulate a device add to the time: the simulated seconds so far, less those that simulating took. */
extern TILTH_HIDDEN double tilth_simulated(void) __attribute__((weak));

double tilth_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec + (tilth_simulated ? tilth_simulated() : 0);
}

static int open_memory(struct tilth_engine *e, const char *weights, int64_t offset) {
  if (tilth_weights_map(&e->weights, weights, offset)) return -1;
  size_t bytes = (size_t)tilth_plan.arena_bytes + HUGE_PAGE;
  e->arena = aligned_alloc(HUGE_PAGE, bytes / HUGE_PAGE * HUGE_PAGE);
  if (!e->arena) return tilth_fail("allocating %lld bytes of memory", (long long)tilth_plan.arena_bytes);
  madvise(e->arena, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
  memset(e->arena, 0, tilth_plan.arena_bytes); /* the first run should not pay for page faults */
  for (int32_t k = 0; k < tilth_plan.n_extents; k++) *tilth_engine_extent(e, k) = tilth_plan.extents[k].most / tilth_plan.extents[k].step;
  return 0;
}

/* The scratch memory has a part for each thread that the model was compiled for. */
static int32_t threads_for(const struct tilth_engine *e, int32_t wanted) {
  int32_t n = wanted > 0 ? wanted : e->cpus.n > 0 ? e->cpus.n : tilth_plan.threads;
  return n < tilth_plan.threads ? n : tilth_plan.threads;
}

static int open_threads(struct tilth_engine *e, const struct tilth_options *o) {
  if (&tilth_uses_tiles && tilth_tiles_permit())
    return tilth_fail("asking the kernel for the use of tiles: %s; the model needs a processor with AMX and Linux 5.16 or later",
                      strerror(errno));
  if (tilth_cpus_read(&e->cpus, o->cpus, o->n_cpus)) return -1;
  int32_t threads = threads_for(e, o->threads);
  e->pool = tilth_pool_create(threads);
  if (!e->pool) return tilth_fail("starting %d threads: %s", threads, strerror(errno));
  for (int32_t k = 1; k < threads; k++) {
    int error = tilth_cpus_confine(&e->cpus, tilth_pool_thread(e->pool, k));
    if (error) return tilth_fail("choosing the processors of a thread: %s", strerror(error));
  }
  return 0;
}

int64_t *tilth_engine_extent(const struct tilth_engine *e, int32_t k) { return (int64_t *)(e->arena + tilth_plan.extents[k].offset); }

struct tilth_engine *tilth_engine_open(const char *weights, int64_t offset, const struct tilth_options *o) {
  struct tilth_engine *e = calloc(1, sizeof *e);
  if (!e) tilth_fail("out of memory");
  if (e && (open_memory(e, weights, offset) || open_threads(e, o))) {
    tilth_engine_close(e);
    return NULL;
  }
  return e;
}

void tilth_engine_close(struct tilth_engine *e) {
  tilth_pool_destroy(e->pool);
  free(e->arena);
  tilth_weights_unmap(&e->weights);
  free(e);
}

int32_t tilth_engine_threads(const struct tilth_engine *e) { return tilth_pool_runtime(e->pool)->workers; }

static void *at(const struct tilth_engine *e, struct tilth_place p) { return (p.in_weights ? e->weights.data : e->arena) + p.offset; }

void *tilth_engine_input(struct tilth_engine *e, int32_t k) { return at(e, tilth_plan.input_places[k]); }

const void *tilth_engine_result(const struct tilth_engine *e, int32_t k) { return at(e, tilth_plan.output_places[k]); }

/* The caller's tiles may be configured otherwise by whatever else it does. */
static void run(struct tilth_engine *e, double *seconds) {
  struct tilth_visit visit;
  tilth_cpus_enter(&e->cpus, &visit);
  tilth_tiles_configure();
  tilth_plan.run(tilth_pool_runtime(e->pool), e->arena, e->weights.data, seconds);
  tilth_tiles_release();
  tilth_cpus_leave(&visit);
}

void tilth_engine_run(struct tilth_engine *e) { run(e, NULL); }

void tilth_engine_profile(struct tilth_engine *e, double *seconds) { run(e, seconds); }

void tilth_engine_peak(struct tilth_engine *e, double *flops, double *bytes) {
  struct tilth_visit visit;
  tilth_cpus_enter(&e->cpus, &visit);
  tilth_measure_peak(tilth_pool_runtime(e->pool), flops, bytes);
  tilth_cpus_leave(&visit);
}

double tilth_engine_integer_peak(struct tilth_engine *e) {
  struct tilth_visit visit;
  tilth_cpus_enter(&e->cpus, &visit);
  double operations = tilth_measure_integer_peak(tilth_pool_runtime(e->pool));
  tilth_cpus_leave(&visit);
  return operations;
}
