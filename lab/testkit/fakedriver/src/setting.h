/* Settings of fake libraries: numbers in files beside the library. */
#ifndef TILTH_SETTING_H
#define TILTH_SETTING_H
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The folder of this library. */
static const char *folder(void) {
  static char path[4096];
  Dl_info info;
  if (!path[0] && dladdr((void *)folder, &info)) {
    snprintf(path, sizeof path, "%s", info.dli_fname);
    *strrchr(path, '/') = 0;
  }
  return path;
}

/* Returns the number in a file of the folder, or otherwise if it is missing. */
static int64_t setting(const char *name, int64_t otherwise) {
  char path[4200];
  long long n = otherwise;
  snprintf(path, sizeof path, "%s/%s", folder(), name);
  FILE *f = fopen(path, "r");
  if (f) {
    if (fscanf(f, "%lld", &n) != 1) n = otherwise;
    fclose(f);
  }
  return n;
}

#endif
