#define _GNU_SOURCE
#include "nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef struct nvmlDevice_st *nvmlDevice_t;

enum { TEMPERATURE_OF_CHIP = 0, CLOCK_OF_MULTIPROCESSORS = 1, CLOCK_OF_MEMORY = 2, ERRORS_CORRECTED = 0, ERRORS_UNCORRECTED = 1, SINCE_LOADED = 0 };

/* Every function that is used, of which an older library may lack some. */
#define NVML_FUNCTIONS(F)                                                                                           \
  F(nvmlInit_v2, (void))                                                                                            \
  F(nvmlDeviceGetHandleByUUID, (const char *uuid, nvmlDevice_t *device))                                            \
  F(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, (nvmlDevice_t slice, nvmlDevice_t *device))                       \
  F(nvmlDeviceGetTemperature, (nvmlDevice_t device, int sensor, unsigned *celsius))                                 \
  F(nvmlDeviceGetClockInfo, (nvmlDevice_t device, int clock, unsigned *megahertz))                                  \
  F(nvmlDeviceGetMaxClockInfo, (nvmlDevice_t device, int clock, unsigned *megahertz))                               \
  F(nvmlDeviceGetCurrentClocksThrottleReasons, (nvmlDevice_t device, unsigned long long *reasons))                  \
  F(nvmlDeviceGetTotalEccErrors, (nvmlDevice_t device, int kind, int since, unsigned long long *errors))

#define NVML_MEMBER(name, parameters) int(*name) parameters;
struct nvml {
  NVML_FUNCTIONS(NVML_MEMBER)
  const char *(*nvmlErrorString)(int result);
  nvmlDevice_t device;
};

static int refused(const struct nvml *n, int result, char *message, int message_bytes) {
  if (result == 0) return 0;
  snprintf(message, message_bytes, "%s", n->nvmlErrorString ? n->nvmlErrorString(result) : "an error that the library does not explain");
  return -1;
}

/* A slice has no clocks and temperature of its own, but those of its card. */
static int find(struct nvml *n, const char *uuid, char *message, int message_bytes) {
  nvmlDevice_t card;
  if (refused(n, n->nvmlDeviceGetHandleByUUID(uuid, &n->device), message, message_bytes)) return -1;
  if (strncmp(uuid, "MIG-", 4) == 0 && n->nvmlDeviceGetDeviceHandleFromMigDeviceHandle && n->nvmlDeviceGetDeviceHandleFromMigDeviceHandle(n->device, &card) == 0)
    n->device = card;
  return 0;
}

struct nvml *nvml_open(const char *library, const char *uuid, char *message, int message_bytes) {
  static struct nvml n;
  void *object = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!object) {
    snprintf(message, message_bytes, "%s", dlerror());
    return NULL;
  }
#define NVML_FIND(name, parameters) n.name = (int(*) parameters)dlsym(object, #name);
  NVML_FUNCTIONS(NVML_FIND)
#undef NVML_FIND
  n.nvmlErrorString = (const char *(*)(int))dlsym(object, "nvmlErrorString");
  if (!n.nvmlInit_v2 || !n.nvmlDeviceGetHandleByUUID) {
    snprintf(message, message_bytes, "%s is too old", library);
    return NULL;
  }
  return refused(&n, n.nvmlInit_v2(), message, message_bytes) || find(&n, uuid, message, message_bytes) ? NULL : &n;
}

struct health nvml_read(const struct nvml *n) {
  struct health h = {NOT_TOLD, NOT_TOLD, {NOT_TOLD, NOT_TOLD}, {NOT_TOLD, NOT_TOLD}, NOT_TOLD, NOT_TOLD};
  unsigned value;
  unsigned long long large;
#define NVML_TAKE(place, from, function, ...) \
  if (n->function && n->function(n->device, __VA_ARGS__) == 0) h.place = (long long)(from)
  NVML_TAKE(celsius, value, nvmlDeviceGetTemperature, TEMPERATURE_OF_CHIP, &value);
  NVML_TAKE(reasons, large, nvmlDeviceGetCurrentClocksThrottleReasons, &large);
  NVML_TAKE(multiprocessors.megahertz, value, nvmlDeviceGetClockInfo, CLOCK_OF_MULTIPROCESSORS, &value);
  NVML_TAKE(multiprocessors.most, value, nvmlDeviceGetMaxClockInfo, CLOCK_OF_MULTIPROCESSORS, &value);
  NVML_TAKE(memory.megahertz, value, nvmlDeviceGetClockInfo, CLOCK_OF_MEMORY, &value);
  NVML_TAKE(memory.most, value, nvmlDeviceGetMaxClockInfo, CLOCK_OF_MEMORY, &value);
  NVML_TAKE(corrected, large, nvmlDeviceGetTotalEccErrors, ERRORS_CORRECTED, SINCE_LOADED, &large);
  NVML_TAKE(uncorrected, large, nvmlDeviceGetTotalEccErrors, ERRORS_UNCORRECTED, SINCE_LOADED, &large);
#undef NVML_TAKE
  return h;
}
