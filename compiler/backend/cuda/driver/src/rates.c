#include "rates.h"

#include "calibration.h"

enum { RATE_RUNS = 3, RATE_COPIES = 8 };

/* Something that is timed. */
struct timed_work {
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

/* The least seconds of some runs, of which the first wakes the card; 0 when there was an error. */
static double least_seconds(const struct driver *d, CUstream stream, const struct timed_work *w) {
  CUevent begin, end;
  double least = 0;
  if (d->cuEventCreate(&begin, 0) || d->cuEventCreate(&end, 0)) return 0;
  for (int run = 0; run <= RATE_RUNS; run++) {
    float milliseconds = 0;
    if (d->cuEventRecord(begin, stream) || start_work(d, stream, w) || d->cuEventRecord(end, stream) || d->cuEventSynchronize(end) ||
        d->cuEventElapsedTime(&milliseconds, begin, end))
      return 0;
    double seconds = 1e-3 * (double)milliseconds;
    if (run == 1 || (run > 1 && seconds < least)) least = seconds;
  }
  return least;
}

double driver_flops(const struct driver *d, CUstream stream) {
  struct timed_work w = {0};
  CUdevice device;
  CUmodule module;
  int multiprocessors = 0;
  if (d->cuCtxGetDevice(&device) || d->cuDeviceGetAttribute(&multiprocessors, CU_MULTIPROCESSORS, device) ||
      d->cuModuleLoadDataEx(&module, calibration_code, 0, NULL, NULL) || d->cuModuleGetFunction(&w.function, module, "tilth_calibration"))
    return 0;
  w.blocks = CALIBRATION_BLOCKS * multiprocessors;
  double threads = (double)CALIBRATION_THREADS * w.blocks;
  if (d->cuMemAlloc_v2(&w.memory, (size_t)threads * sizeof(float))) return 0;
  double seconds = least_seconds(d, stream, &w);
  d->cuMemFree_v2(w.memory);
  return seconds > 0 ? 2.0 * CALIBRATION_STEPS * CALIBRATION_UNROLLED * threads / seconds : 0;
}

double driver_copies(const struct driver *d, CUstream stream, int64_t bytes) {
  struct timed_work w = {.bytes = bytes};
  if (d->cuMemAlloc_v2(&w.memory, 2 * (size_t)bytes)) return 0;
  double seconds = least_seconds(d, stream, &w);
  d->cuMemFree_v2(w.memory);
  return seconds > 0 ? 2.0 * RATE_COPIES * (double)bytes / seconds : 0;
}
