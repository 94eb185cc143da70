/* A management library without a GPU, for tests. Its numbers are in files of its folder: `celsius`, `megahertz` (of at most 1980), `reasons`,
 * `corrected`, `uncorrected`. It finds every card by its UUID, except for UUIDs that begin with `none`. A slice has no values of its own. */
#define _GNU_SOURCE
#include "setting.h"

#define EXPORT __attribute__((visibility("default")))

enum { INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, MOST_MEGAHERTZ = 1980, MEMORY_MEGAHERTZ = 2619, MEMORY_CLOCK = 2 };

typedef struct nvmlDevice_st { int slice; } *nvmlDevice_t;

static struct nvmlDevice_st card, slice = {1};

EXPORT int nvmlInit_v2(void) { return 0; }

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
  *device = strncmp(uuid, "MIG-", 4) == 0 ? &slice : &card;
  return strncmp(uuid, "GPU-", 4) == 0 || *device == &slice ? 0 : NOT_FOUND;
}

EXPORT int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t part, nvmlDevice_t *device) {
  return part->slice ? *device = &card, 0 : INVALID_ARGUMENT;
}

EXPORT int nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned *celsius) {
  return *celsius = (unsigned)setting("celsius", 57), device->slice || sensor != 0 ? NOT_SUPPORTED : 0;
}

EXPORT int nvmlDeviceGetClockInfo(nvmlDevice_t device, int clock, unsigned *megahertz) {
  *megahertz = clock == MEMORY_CLOCK ? MEMORY_MEGAHERTZ : (unsigned)setting("megahertz", MOST_MEGAHERTZ);
  return device->slice ? NOT_SUPPORTED : 0;
}

EXPORT int nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, int clock, unsigned *megahertz) {
  return *megahertz = clock == MEMORY_CLOCK ? MEMORY_MEGAHERTZ : MOST_MEGAHERTZ, device->slice ? NOT_SUPPORTED : 0;
}

EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *reasons) {
  return *reasons = (unsigned long long)setting("reasons", 0), device->slice ? NOT_SUPPORTED : 0;
}

/* A card without such memory, which -1 stands for, supports no count of it. */
EXPORT int nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, int kind, int since, unsigned long long *errors) {
  int64_t n = setting(kind == 0 ? "corrected" : "uncorrected", 0);
  return *errors = (unsigned long long)n, device->slice || since != 0 || n < 0 ? NOT_SUPPORTED : 0;
}

EXPORT const char *nvmlErrorString(int result) { return result == NOT_FOUND ? "Not Found" : "Not Supported"; }
