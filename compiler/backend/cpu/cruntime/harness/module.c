#define _GNU_SOURCE
#include "module.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

#include "report.h"

/* Why libraries that the object's kernels call are not those that they were made for; NULL where they are. */
static const char *unfit(void *object) {
  const char *(*check)(void);
  *(void **)&check = dlsym(object, "tilth_libraries");
  return check ? check() : NULL;
}

/* The loaded objects that simulate devices. */
static struct simulation {
  void *object;
  double (*seconds)(void);
} *simulations;
static int n_simulations;

static void add_simulation(void *object) {
  void *seconds = dlsym(object, "tilth_simulated");
  struct simulation *more = seconds ? realloc(simulations, (n_simulations + 1) * sizeof *more) : NULL;
  if (!more) return;
  simulations = more;
  simulations[n_simulations].object = object;
  *(void **)&simulations[n_simulations++].seconds = seconds;
}

double module_simulated(void) {
  double seconds = 0;
  for (int k = 0; k < n_simulations; k++) seconds += simulations[k].seconds();
  return seconds;
}

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
  if (module && module->abi == TILTH_ABI) {
    add_simulation(loaded);
    return module;
  }
  if (module) report_error("%s has kernel ABI %d; this harness knows %d", path, module->abi, TILTH_ABI);
  else report_error("%s exports no tilth_module", path);
  return NULL;
}

void module_unload(void *object) {
  for (int k = n_simulations - 1; k >= 0; k--)
    if (simulations[k].object == object) simulations[k] = simulations[--n_simulations];
  dlclose(object);
}
