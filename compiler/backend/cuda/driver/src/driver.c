#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>

int driver_open(struct driver *d, const char *library, char *message, int message_bytes) {
  void *object = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!object) {
    snprintf(message, message_bytes, "no driver of NVIDIA's GPUs: %s; install it, or set TILTH_CUDA_DRIVER to its library", dlerror());
    return -1;
  }
#define DRIVER_FIND(name, parameters)                                                         \
  if (!(d->name = (CUresult(*) parameters)dlsym(object, #name))) {                            \
    snprintf(message, message_bytes, "%s has no %s; a newer driver has it", library, #name);  \
    return -1;                                                                                \
  }
  DRIVER_FUNCTIONS(DRIVER_FIND)
#undef DRIVER_FIND
#define DRIVER_LOOK_FOR(name, parameters) d->name = (CUresult(*) parameters)dlsym(object, #name);
  DRIVER_NEWER_FUNCTIONS(DRIVER_LOOK_FOR)
#undef DRIVER_LOOK_FOR
  return 0;
}

CUresult driver_load(const struct driver *d, CUmodule *module, const void *assembled, const char *ptx, char *log, int log_bytes) {
  int options[] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES};
  void *values[] = {log, (void *)(uintptr_t)log_bytes};
  if (assembled && d->cuModuleLoadDataEx(module, assembled, 0, NULL, NULL) == CUDA_SUCCESS) return CUDA_SUCCESS;
  return d->cuModuleLoadDataEx(module, ptx, log ? 2 : 0, options, values);
}

const char *driver_error(const struct driver *d, CUresult result) {
  const char *text = NULL;
  if (d->cuGetErrorString(result, &text) != CUDA_SUCCESS || !text) return "an error that the driver does not explain";
  return text;
}
