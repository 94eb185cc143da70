/* Measures the candidate kernels of one workload on this machine: loads them, verifies each against the reference kernel on
 * seeded data, times those that are right, and reports one line a kernel as soon as it is known. Candidates run in this
 * very process; one that crashes or hangs ends it, and the runner starts another for those after it (--first). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "bench.h"
#include "fault.h"
#include "pool.h"
#include "sandbox.h"

static const struct tilth_module *load_module(const char *path) {
  void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!object) {
    report_error("loading kernels: %s", dlerror());
    return NULL;
  }
  const struct tilth_module *module = dlsym(object, "tilth_module");
  if (module && module->abi == TILTH_ABI) return module;
  if (module) report_error("%s has kernel ABI %d; this harness knows %d", path, module->abi, TILTH_ABI);
  else report_error("%s exports no tilth_module", path);
  return NULL;
}

static int measure_kernel(struct bench *b, struct loaded *l, const struct tilth_kernel *kernel, int32_t index) {
  double samples[MOST_SAMPLES_KEPT], begin = seconds_now();
  char message[512] = "";
  struct outcome o = {0};
  fault_index(index);
  report_start(index);
  if (bench_load(b, l, kernel)) return -1;
  measure(b, l, &o, samples, message, sizeof message);
  bench_unload(l);
  o.run_seconds = seconds_now() - begin;
  report_outcome(index, kernel->id, &o);
  return 0;
}

static int run(const struct options *o, const struct tilth_runtime *rt) {
  static struct bench bench;
  static struct loaded loaded;
  const struct tilth_module *reference = load_module(o->reference);
  if (!reference || bench_open(&bench, o, rt, reference)) return -1;
  report_start(-1);
  fault_index(-1);
  fault_catch(&bench, &loaded);
  if (bench_reference(&bench, reference->kernels)) return -1;
  sandbox_close();
  const struct tilth_module *candidates = load_module(o->candidates);
  if (!candidates || bench_matches(&bench, candidates)) return -1;
  report_module(candidates);
  for (int32_t k = o->first; k < candidates->n_kernels; k++)
    if (measure_kernel(&bench, &loaded, &candidates->kernels[k], k)) return -1;
  report_done();
  return 0;
}

int main(int argc, char **argv) {
  struct options o;
  const char *wrong;
  int error = report_open();
  if (error) return 2;
  if (options_parse(&o, argc, argv, &wrong)) {
    report_error("bad argument: %s", wrong);
    return 2;
  }
  sandbox_limits(o.memory_bytes);
  struct tilth_pool *pool = tilth_pool_create(o.threads);
  if (!pool) {
    report_error("starting %d threads: %s", o.threads, strerror(errno));
    return 1;
  }
  return run(&o, tilth_pool_runtime(pool)) ? 1 : 0;
}
