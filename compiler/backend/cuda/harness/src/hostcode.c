#define _GNU_SOURCE
#include "hostcode.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "module.h"
#include "report.h"

enum { HOSTCODE_FILES = 4096 };

static struct {
  const struct tilth_module *modules[HOSTCODE_FILES];
  const tilth_card_kernel *kernels[HOSTCODE_FILES];
  int n;
} hostcode;

int hostcode_is(const char *path) {
  char magic[4] = "";
  FILE *f = fopen(path, "rb");
  if (!f) return 0;
  size_t n = fread(magic, 1, sizeof magic, f);
  fclose(f);
  return n == sizeof magic && memcmp(magic, "\177ELF", sizeof magic) == 0;
}

const struct tilth_module *hostcode_load(const char *path) {
  void *object;
  const struct tilth_module *module = module_load(path, &object);
  if (!module) return NULL;
  const tilth_card_kernel *kernels = dlsym(object, "tilth_card_kernels");
  if (!kernels || hostcode.n == HOSTCODE_FILES) {
    report_error("%s", kernels ? "there are too many files" : "it has no tilth_card_kernels: it is for a processor");
    return NULL;
  }
  hostcode.modules[hostcode.n] = module, hostcode.kernels[hostcode.n++] = kernels;
  return module;
}

tilth_card_kernel hostcode_kernel_of(const struct tilth_kernel *kernel) {
  for (int k = 0; k < hostcode.n; k++) {
    const struct tilth_module *m = hostcode.modules[k];
    if (kernel >= m->kernels && kernel < m->kernels + m->n_kernels) return hostcode.kernels[k][kernel - m->kernels];
  }
  return NULL;
}
