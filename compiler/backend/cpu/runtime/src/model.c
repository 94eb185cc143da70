/* The part of a package that is the same in all: memory, threads and the C interface. */
#define _GNU_SOURCE
#include "model.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "peak.h"
#include "pool.h"

#define API __attribute__((visibility("default")))
#define HUGE_PAGE (2 << 20)

struct tilth_model {
  struct tilth_pool *pool;
  char *arena, *weights;
  void *mapped; /* the file's pages around the weights */
  size_t mapped_bytes;
};

static _Thread_local char last_error[512];

static int fail(const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(last_error, sizeof last_error, format, args);
  va_end(args);
  return -1;
}

double tilth_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Maps the weights in place: they are shared with other processes and come in as they are used. */
static int map_file(struct tilth_model *m, int fd, const char *path, int64_t offset) {
  struct stat s;
  if (fstat(fd, &s)) return fail("reading %s: %s", path, strerror(errno));
  if (offset < 0 || offset % 64 || s.st_size - offset < tilth_plan.weights_bytes)
    return fail("%s does not hold this model's weights: %lld bytes are needed at offset %lld, the file has %lld", path,
                (long long)tilth_plan.weights_bytes, (long long)offset, (long long)s.st_size);
  int64_t skip = offset % sysconf(_SC_PAGESIZE);
  m->mapped_bytes = tilth_plan.weights_bytes + skip;
  m->mapped = mmap(NULL, m->mapped_bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, offset - skip);
  if (m->mapped == MAP_FAILED) {
    m->mapped = NULL;
    return fail("mapping %s: %s", path, strerror(errno));
  }
  m->weights = (char *)m->mapped + skip;
  return 0;
}

static int map_weights(struct tilth_model *m, const char *path, int64_t offset) {
  if (tilth_plan.weights_bytes == 0) return 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail("opening %s: %s", path, strerror(errno));
  int result = map_file(m, fd, path, offset);
  close(fd);
  return result;
}

static int open_parts(struct tilth_model *m, const char *weights, int64_t offset) {
  if (map_weights(m, weights, offset)) return -1;
  size_t bytes = (size_t)tilth_plan.arena_bytes + HUGE_PAGE;
  m->arena = aligned_alloc(HUGE_PAGE, bytes / HUGE_PAGE * HUGE_PAGE);
  if (!m->arena) return fail("allocating %lld bytes of memory", (long long)tilth_plan.arena_bytes);
  madvise(m->arena, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
  memset(m->arena, 0, tilth_plan.arena_bytes); /* the first run should not pay for page faults */
  m->pool = tilth_pool_create(tilth_plan.threads);
  return m->pool ? 0 : fail("starting %d threads: %s", tilth_plan.threads, strerror(errno));
}

API struct tilth_model *tilth_open(const char *weights, int64_t offset) {
  last_error[0] = 0;
  struct tilth_model *m = calloc(1, sizeof *m);
  if (!m) fail("out of memory");
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
  if (m->mapped) munmap(m->mapped, m->mapped_bytes);
  free(m);
}

API const char *tilth_last_error(void) { return last_error; }

API int32_t tilth_input_count(void) { return tilth_plan.n_inputs; }
API int32_t tilth_output_count(void) { return tilth_plan.n_outputs; }
API int32_t tilth_call_count(void) { return tilth_plan.n_calls; }

API const struct tilth_tensor *tilth_input_tensor(int32_t k) {
  return k >= 0 && k < tilth_plan.n_inputs ? &tilth_plan.inputs[k] : NULL;
}

API const struct tilth_tensor *tilth_output_tensor(int32_t k) {
  return k >= 0 && k < tilth_plan.n_outputs ? &tilth_plan.outputs[k] : NULL;
}

API const char *tilth_call_name(int32_t k) { return k >= 0 && k < tilth_plan.n_calls ? tilth_plan.call_names[k] : NULL; }

static void *at(const struct tilth_model *m, struct tilth_place p) { return (p.in_weights ? m->weights : m->arena) + p.offset; }

API void *tilth_input(struct tilth_model *m, int32_t k) {
  return k >= 0 && k < tilth_plan.n_inputs ? at(m, tilth_plan.input_places[k]) : NULL;
}

API const void *tilth_output(const struct tilth_model *m, int32_t k) {
  return k >= 0 && k < tilth_plan.n_outputs ? at(m, tilth_plan.output_places[k]) : NULL;
}

API void tilth_run(struct tilth_model *m) { tilth_plan.run(tilth_pool_runtime(m->pool), m->arena, m->weights, NULL); }

API void tilth_profile(struct tilth_model *m, double *seconds) {
  tilth_plan.run(tilth_pool_runtime(m->pool), m->arena, m->weights, seconds);
}

API void tilth_peak(struct tilth_model *m, double *flops, double *bytes) {
  tilth_measure_peak(tilth_pool_runtime(m->pool), flops, bytes);
}

API double tilth_integer_peak(struct tilth_model *m) { return tilth_measure_integer_peak(tilth_pool_runtime(m->pool)); }
