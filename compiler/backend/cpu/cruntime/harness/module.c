#define _GNU_SOURCE
#include "module.h"

#include <dlfcn.h>
#include <stddef.h>

#include "report.h"

/* Why libraries that the object's kernels call are not those that they were made for; NULL where they are. */
static const char *unfit(void *object) {
  const char *(*check)(void);
  *(void **)&check = dlsym(object, "tilth_libraries");
  return check ? check() : NULL;
}

/* A harness for a simulated device has it. A symbol of a loaded object does not count. */
extern double tilth_simulated(void) __attribute__((weak, visibility("hidden")));

double module_simulated(void) { return tilth_simulated ? tilth_simulated() : 0; }

const struct tilth_module *module_load(const char *path, void **object) {
  void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (object) *object = loaded;
  if (!loaded) {
    report_error("loading kernels: %s", dlerror());
    return NULL;
  }
  const char *complaint = unfit(loaded);
  if (complaint) {
    report_error("%s", complaint);
    return NULL;
  }
  const struct tilth_module *module = dlsym(loaded, "tilth_module");
  if (module && module->abi == TILTH_ABI) return module;
  if (module) report_error("%s has kernel ABI %d; this harness knows %d", path, module->abi, TILTH_ABI);
  else report_error("%s exports no tilth_module", path);
  return NULL;
}

void module_unload(void *object) { dlclose(object); }
