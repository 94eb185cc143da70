#define _GNU_SOURCE
#include "hosted.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "module.h"
#include "report.h"

enum { HOSTED_FILES = 4096 };

static struct {
  const struct tilth_module *modules[HOSTED_FILES];
  const tilth_card_kernel *kernels[HOSTED_FILES];
  int n;
} hosted;

int hosted_is(const char *path) {
  char magic[4] = "";
  FILE *f = fopen(path, "rb");
  if (!f) return 0;
  size_t n = fread(magic, 1, sizeof magic, f);
  fclose(f);
  return n == sizeof magic && memcmp(magic, "\177ELF", sizeof magic) == 0;
}

const struct tilth_module *hosted_load(const char *path) {
  void *object;
  const struct tilth_module *module = module_load(path, &object);
  if (!module) return NULL;
  const tilth_card_kernel *kernels = dlsym(object, "tilth_card_kernels");
  if (!kernels || hosted.n == HOSTED_FILES) {
    report_error("%s", kernels ? "there are too many files" : "it has no tilth_card_kernels: it is for a processor");
    return NULL;
  }
  hosted.modules[hosted.n] = module, hosted.kernels[hosted.n++] = kernels;
  return module;
}

tilth_card_kernel hosted_kernel_of(const struct tilth_kernel *kernel) {
  for (int k = 0; k < hosted.n; k++) {
    const struct tilth_module *m = hosted.modules[k];
    if (kernel >= m->kernels && kernel < m->kernels + m->n_kernels) return hosted.kernels[k][kernel - m->kernels];
  }
  return NULL;
}

int hosted_any(void) { return hosted.n > 0; }
