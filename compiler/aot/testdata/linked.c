/* Is linked with two packages of the prefixes first and second, and loads them by dlopen if it is given their objects.
 * Reads the inputs of both from standard input, runs each twice, by turns, and writes the outputs of the second runs. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "first.h"
#include "second.h"

enum { PACKAGES = 2 };

static const struct tilth_api *loaded(const char *path) {
  void *object = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (!object) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return ((const struct tilth_api *(*)(void))dlsym(object, "tilth_api"))();
}

static struct tilth_model *opened(const struct tilth_api *api, const char *weights) {
  struct tilth_model *m = api->open("/nowhere", 0);
  if (m || !api->last_error()[0]) exit(3);
  m = api->open(weights, 0);
  if (!m) {
    fprintf(stderr, "%s\n", api->last_error());
    exit(1);
  }
  for (int k = 0; k < api->input_count(); k++)
    if (fread(api->input(m, k), api->input_tensor(k)->bytes, 1, stdin) != 1) exit(2);
  return m;
}

int main(int argc, char **argv) {
  const struct tilth_api *api[PACKAGES] = {first_api(), second_api()};
  struct tilth_model *models[PACKAGES];
  if (argc > 3) api[0] = loaded(argv[3]), api[1] = loaded(argv[4]);
  if (api[0] == api[1] || !TILTH_HAS(api[0], integer_peak) || api[0]->device) return 4;
  for (int k = 0; k < PACKAGES; k++) models[k] = opened(api[k], argv[1 + k]);
  for (int round = 0; round < 2; round++)
    for (int k = 0; k < PACKAGES; k++) api[k]->run(models[k]);
  for (int k = 0; k < PACKAGES; k++)
    for (int o = 0; o < api[k]->output_count(); o++) fwrite(api[k]->output(models[k], o), api[k]->output_tensor(o)->bytes, 1, stdout);
  for (int k = 0; k < PACKAGES; k++) api[k]->close(models[k]);
  return 0;
}
