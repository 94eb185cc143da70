#include "rates.h"

#include "calibration.h"
#include "matrices.h"
#include "warpgroups.h"

enum { RATE_RUNS = 3, RATE_COPIES = 8 };

/* Something that is timed. */
struct timed_work {
  CUmodule module;
  CUfunction function;
  CUdeviceptr memory;
  int blocks;
  int64_t bytes;
};

static CUresult start_work(const struct driver *d, CUstream stream, const struct timed_work *w) {
  void *parameters[] = {(void *)&w->memory, NULL};
  CUresult result = CUDA_SUCCESS;
  if (w->function) return d->cuLaunchKernel(w->function, (unsigned)w->blocks, 1, 1, CALIBRATION_THREADS, 1, 1, 0, stream, parameters, NULL);
  for (int k = 0; k < RATE_COPIES && result == CUDA_SUCCESS; k++)
    result = d->cuMemcpyDtoDAsync_v2(w->memory, w->memory + (uint64_t)w->bytes, (size_t)w->bytes, stream);
  return result;
}

/* Events before and behind what is timed. */
struct clock {
  CUevent begin, end;
};

static CUresult open_clock(const struct driver *d, struct clock *c) {
  CUresult result = d->cuEventCreate(&c->begin, 0);
  return result ? result : d->cuEventCreate(&c->end, 0);
}

static void close_clock(const struct driver *d, struct clock *c) {
  d->cuEventDestroy_v2(c->begin);
  d->cuEventDestroy_v2(c->end);
}

static CUresult time_work(const struct driver *d, CUstream stream, const struct clock *c, const struct timed_work *w, double *seconds) {
  float milliseconds = 0;
  CUresult result;
  if ((result = d->cuEventRecord(c->begin, stream)) || (result = start_work(d, stream, w)) || (result = d->cuEventRecord(c->end, stream)) ||
      (result = d->cuEventSynchronize(c->end)) || (result = d->cuEventElapsedTime(&milliseconds, c->begin, c->end)))
    return result;
  *seconds = 1e-3 * (double)milliseconds;
  return CUDA_SUCCESS;
}

/* The least seconds of some runs, of which the first wakes the card; 0 when there was an error. */
static double least_seconds(const struct driver *d, CUstream stream, const struct timed_work *w) {
  struct clock c;
  double least = 0;
  if (open_clock(d, &c)) return 0;
  for (int run = 0; run <= RATE_RUNS; run++) {
    double seconds = 0;
    if (time_work(d, stream, &c, w, &seconds)) {
      least = 0;
      break;
    }
    if (run == 1 || (run > 1 && seconds < least)) least = seconds;
  }
  close_clock(d, &c);
  return least;
}

/* Lets go of what was opened, all of it or not. */
static void close_work(const struct driver *d, struct timed_work *w) {
  if (w->memory) d->cuMemFree_v2(w->memory);
  if (w->module) d->cuModuleUnload(w->module);
  *w = (struct timed_work){0};
}

/* A kernel that keeps all multiprocessors busy, and has a sum for each thread. */
static CUresult open_kernel(const struct driver *d, const char *code, const char *kernel, struct timed_work *w) {
  CUdevice device;
  int multiprocessors = 0;
  CUresult result;
  if ((result = d->cuCtxGetDevice(&device)) || (result = d->cuDeviceGetAttribute(&multiprocessors, CU_MULTIPROCESSORS, device)) ||
      (result = d->cuModuleLoadDataEx(&w->module, code, 0, NULL, NULL)) || (result = d->cuModuleGetFunction(&w->function, w->module, kernel)))
    return result;
  w->blocks = CALIBRATION_BLOCKS * multiprocessors;
  return d->cuMemAlloc_v2(&w->memory, sizeof(float) * CALIBRATION_THREADS * (size_t)w->blocks);
}

static CUresult open_arithmetic(const struct driver *d, struct timed_work *w) { return open_kernel(d, calibration_code, "tilth_calibration", w); }

static CUresult open_copies(const struct driver *d, int64_t bytes, struct timed_work *w) {
  w->bytes = bytes;
  return d->cuMemAlloc_v2(&w->memory, 2 * (size_t)bytes);
}

double driver_flops(const struct driver *d, CUstream stream) {
  struct timed_work w = {0};
  double seconds = open_arithmetic(d, &w) ? 0 : least_seconds(d, stream, &w);
  double flops = seconds > 0 ? 2.0 * CALIBRATION_STEPS * CALIBRATION_UNROLLED * CALIBRATION_THREADS * w.blocks / seconds : 0;
  close_work(d, &w);
  return flops;
}

double driver_matrices(const struct driver *d, CUstream stream, int format) {
  struct timed_work w = {0};
  char code[MATRICES_CODE];
  if (format < 0 || format >= MATRICES_FORMATS) return 0;
  const struct matrices *m = &matrices[format];
  int steps = m->warps == 1 ? MATRICES_STEPS : GROUP_STEPS;
  (m->warps == 1 ? matrices_code : warpgroups_code)(m, code);
  double seconds = open_kernel(d, code, "tilth_calibration_matrices", &w) ? 0 : least_seconds(d, stream, &w);
  double chains = (double)w.blocks * CALIBRATION_THREADS / (32 * m->warps);
  close_work(d, &w);
  return seconds > 0 ? m->operations * MATRICES_UNROLLED * steps * chains / seconds : 0;
}

double driver_copies(const struct driver *d, CUstream stream, int64_t bytes) {
  struct timed_work w = {0};
  double seconds = open_copies(d, bytes, &w) ? 0 : least_seconds(d, stream, &w);
  close_work(d, &w);
  return seconds > 0 ? 2.0 * RATE_COPIES * (double)bytes / seconds : 0;
}

/* The first of each wakes the card, and its time is overwritten by that of the next. */
static CUresult take_turns(const struct driver *d, CUstream stream, const struct timed_work *a, const struct timed_work *b, int n, double *compute, double *memory) {
  struct clock c;
  CUresult result = open_clock(d, &c);
  if (result) return result;
  for (int k = -1; k < n && result == CUDA_SUCCESS; k++) {
    int at = k < 0 ? 0 : k;
    if ((result = time_work(d, stream, &c, a, &compute[at])) == CUDA_SUCCESS) result = time_work(d, stream, &c, b, &memory[at]);
  }
  close_clock(d, &c);
  return result;
}

CUresult driver_samples(const struct driver *d, CUstream stream, int64_t bytes, int n, double *compute, double *memory) {
  struct timed_work arithmetic = {0}, copies = {0};
  CUresult result;
  if ((result = open_arithmetic(d, &arithmetic)) == CUDA_SUCCESS && (result = open_copies(d, bytes, &copies)) == CUDA_SUCCESS)
    result = take_turns(d, stream, &arithmetic, &copies, n, compute, memory);
  close_work(d, &arithmetic);
  close_work(d, &copies);
  return result;
}

CUresult driver_busy_open(const struct driver *d, struct driver_busy *b) {
  struct timed_work w = {0};
  CUresult result = open_arithmetic(d, &w);
  if (result) close_work(d, &w);
  *b = (struct driver_busy){w.module, w.function, w.memory, w.blocks};
  return result;
}

void driver_busy_close(const struct driver *d, struct driver_busy *b) {
  struct timed_work w = {b->module, b->function, b->memory, b->blocks, 0};
  close_work(d, &w);
  *b = (struct driver_busy){0};
}

CUresult driver_busy_start(const struct driver *d, CUstream stream, const struct driver_busy *b, int n) {
  struct timed_work w = {b->module, b->function, b->memory, b->blocks, 0};
  CUresult result = CUDA_SUCCESS;
  for (int k = 0; k < n && result == CUDA_SUCCESS; k++) result = start_work(d, stream, &w);
  return result;
}
