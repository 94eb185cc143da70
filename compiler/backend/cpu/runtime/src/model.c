/* The part of a package that is the same in all: memory, threads and running. */
#define _GNU_SOURCE
#include "model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "failure.h"
#include "peak.h"
#include "pool.h"
#include "tiles.h"
#include "weights.h"

#define API __attribute__((visibility("default")))
#define HUGE_PAGE (2 << 20)

struct tilth_model {
  struct tilth_pool *pool;
  char *arena;
  struct tilth_weights weights;
};

/* Kernels that multiply tiles define it. */
extern TILTH_HIDDEN const char tilth_uses_tiles __attribute__((weak));

double tilth_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int open_parts(struct tilth_model *m, const char *weights, int64_t offset) {
  if (tilth_weights_map(&m->weights, weights, offset)) return -1;
  size_t bytes = (size_t)tilth_plan.arena_bytes + HUGE_PAGE;
  m->arena = aligned_alloc(HUGE_PAGE, bytes / HUGE_PAGE * HUGE_PAGE);
  if (!m->arena) return tilth_fail("allocating %lld bytes of memory", (long long)tilth_plan.arena_bytes);
  madvise(m->arena, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
  memset(m->arena, 0, tilth_plan.arena_bytes); /* the first run should not pay for page faults */
  if (&tilth_uses_tiles && tilth_tiles_permit())
    return tilth_fail("asking the kernel for the use of tiles: %s; the model needs a processor with AMX and Linux 5.16 or later",
                      strerror(errno));
  for (int32_t k = 0; k < tilth_plan.n_extents; k++) *tilth_extent(m, k) = tilth_plan.extents[k].most;
  m->pool = tilth_pool_create(tilth_plan.threads);
  return m->pool ? 0 : tilth_fail("starting %d threads: %s", tilth_plan.threads, strerror(errno));
}

int64_t *tilth_extent(const struct tilth_model *m, int32_t k) { return (int64_t *)(m->arena + tilth_plan.extents[k].offset); }

API struct tilth_model *tilth_open(const char *weights, int64_t offset) {
  tilth_fail(NULL);
  struct tilth_model *m = calloc(1, sizeof *m);
  if (!m) tilth_fail("out of memory");
  if (m && open_parts(m, weights, offset)) {
    tilth_close(m);
    return NULL;
  }
  return m;
}

API void tilth_close(struct tilth_model *m) {
  if (!m) return;
  tilth_pool_destroy(m->pool);
  free(m->arena);
  tilth_weights_unmap(&m->weights);
  free(m);
}

static void *at(const struct tilth_model *m, struct tilth_place p) { return (p.in_weights ? m->weights.data : m->arena) + p.offset; }

API void *tilth_input(struct tilth_model *m, int32_t k) {
  return k >= 0 && k < tilth_plan.n_inputs ? at(m, tilth_plan.input_places[k]) : NULL;
}

const void *tilth_result(const struct tilth_model *m, int32_t k) { return at(m, tilth_plan.output_places[k]); }

/* The caller's tiles may be configured otherwise by whatever else it does. */
static void run(struct tilth_model *m, double *seconds) {
  tilth_tiles_configure();
  tilth_plan.run(tilth_pool_runtime(m->pool), m->arena, m->weights.data, seconds);
  tilth_tiles_release();
}

API void tilth_run(struct tilth_model *m) { run(m, NULL); }

API void tilth_profile(struct tilth_model *m, double *seconds) { run(m, seconds); }

API void tilth_peak(struct tilth_model *m, double *flops, double *bytes) {
  tilth_measure_peak(tilth_pool_runtime(m->pool), flops, bytes);
}

API double tilth_integer_peak(struct tilth_model *m) { return tilth_measure_integer_peak(tilth_pool_runtime(m->pool)); }
