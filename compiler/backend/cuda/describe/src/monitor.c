/* Calibrates a card, including copies of the number of bytes in the last argument, and reads its health under load. It writes two lines of
 * seconds, and a line with either the numbers of struct health or the reason why they are unknown. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "nvml.h"
#include "rates.h"

/* Samples of each kind of work. */
enum { MONITOR_SAMPLES = 15 };
/* How long the card works before its clocks are read: it reads them itself some ten times a second. */
enum { MONITOR_BUSY = 100, MONITOR_WAIT_MICROSECONDS = 50000 };

static void write_seconds(const double *seconds) {
  for (int k = 0; k < MONITOR_SAMPLES; k++) printf("%.9g%s", seconds[k], k + 1 < MONITOR_SAMPLES ? " " : "\n");
}

static int fails(const struct driver *d, CUresult result) {
  if (result == CUDA_SUCCESS) return 0;
  fprintf(stderr, "%s\n", driver_error(d, result));
  return 1;
}

static void write_health(const char *library, const char *uuid) {
  char message[512];
  const struct nvml *n = nvml_open(library, uuid, message, sizeof message);
  if (!n) {
    printf("unknown %s\n", message);
    return;
  }
  struct health h = nvml_read(n);
  printf("health %lld %lld %lld %lld %lld %lld %lld %lld\n", h.celsius, h.reasons, h.multiprocessors.megahertz, h.multiprocessors.most, h.memory.megahertz,
         h.memory.most, h.corrected, h.uncorrected);
}

int main(int argc, char **argv) {
  struct driver d;
  CUdevice device;
  CUcontext context;
  struct driver_busy busy;
  double compute[MONITOR_SAMPLES], memory[MONITOR_SAMPLES];
  char text[512];
  if (argc != 5) return 2;
  if (driver_open(&d, argv[1], text, sizeof text)) return fprintf(stderr, "%s\n", text), 1;
  if (fails(&d, d.cuInit(0)) || fails(&d, d.cuDeviceGet(&device, 0)) || fails(&d, d.cuDevicePrimaryCtxRetain(&context, device)) ||
      fails(&d, d.cuCtxSetCurrent(context)) || fails(&d, driver_samples(&d, NULL, atoll(argv[4]), MONITOR_SAMPLES, compute, memory)) ||
      fails(&d, driver_busy_open(&d, &busy)) || fails(&d, driver_busy_start(&d, NULL, &busy, MONITOR_BUSY)))
    return 1;
  write_seconds(compute);
  write_seconds(memory);
  usleep(MONITOR_WAIT_MICROSECONDS);
  write_health(argv[2], argv[3]);
  return fails(&d, d.cuStreamSynchronize(NULL));
}
