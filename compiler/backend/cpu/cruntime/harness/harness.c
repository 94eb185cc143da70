/* Runs the candidate kernels of one workload on this machine: loads them, runs each on seeded data, hands its outputs to the judge, which
 * compares them with the reference's, times those that are right, and reports one line a kernel as soon as it is known. Candidates run in
 * this very process, which is why it does not judge. One that crashes or hangs ends it, and the runner starts another for those after it
 * (--first). With --serve 1 it waits for the next workload after one that ended well. With --compute 1 it runs the reference instead, and loads no candidate; with --examine 1 it runs one candidate by the judge's
 * clock. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "noise.h"
#include "device.h"
#include "examine.h"
#include "fault.h"
#include "finalists.h"
#include "judge.h"
#include "measure.h"
#include "module.h"
#include "pool.h"
#include "procstate.h"
#include "sandbox.h"
#include "tiles.h"
#include "vectors.h"

enum { MOST_KERNELS = 4096 };

struct kernels {
  const struct tilth_kernel *all[MOST_KERNELS];
  int32_t modules[MOST_KERNELS]; /* the objects that they are in */
  int32_t n;
};

static int is_chosen(const struct options *o, const char *id) {
  for (int32_t k = 0; k < o->n_chosen; k++)
    if (strcmp(o->chosen[k], id) == 0) return 1;
  return o->n_chosen == 0;
}

/* Checks the parts of a kernel that are read before its turn, so that defects are reported while its module loads. */
static int is_sound(const struct tilth_kernel *kernel) {
  int sound = kernel->run && kernel->n_prepared >= 0 && kernel->n_prepared <= MOST_PREPARED;
  for (int32_t i = 0; sound && i < kernel->n_prepared; i++) sound = kernel->packs[i]->fill && kernel->packs[i]->bytes >= 0;
  if (!sound) report_error("kernel %s has no function, or packed constants that cannot be", kernel->id);
  return sound;
}

static int gather_module(const struct options *o, const struct bench *b, int32_t m, struct kernels *kernels) {
  report_load(m);
  const struct tilth_module *module = device_module(o->modules[m]);
  if (!module || bench_matches(b, module)) return -1;
  for (int32_t k = 0; k < module->n_kernels; k++) {
    if (!is_chosen(o, module->kernels[k].id)) continue;
    if (!is_sound(&module->kernels[k])) return -1;
    if (kernels->n == MOST_KERNELS) {
      report_error("more than %d kernels", MOST_KERNELS);
      return -1;
    }
    kernels->modules[kernels->n] = m;
    kernels->all[kernels->n++] = &module->kernels[k];
  }
  return 0;
}

/* Loads all modules and gathers those of their kernels that are to be measured. */
static int gather(const struct options *o, const struct bench *b, struct kernels *kernels) {
  kernels->n = 0;
  for (int32_t m = 0; m < o->n_modules; m++)
    if (gather_module(o, b, m, kernels)) return -1;
  return 0;
}

/* Finalists stand in the order in which they were chosen: the best so far is the first. */
static void in_chosen_order(const struct options *o, struct kernels *kernels) {
  int32_t sorted = 0;
  for (int32_t c = 0; c < o->n_chosen; c++)
    for (int32_t k = sorted; k < kernels->n; k++)
      if (strcmp(kernels->all[k]->id, o->chosen[c]) == 0) {
        const struct tilth_kernel *kernel = kernels->all[k];
        int32_t module = kernels->modules[k];
        kernels->all[k] = kernels->all[sorted], kernels->modules[k] = kernels->modules[sorted];
        kernels->all[sorted] = kernel, kernels->modules[sorted++] = module;
      }
}

/* Behind this there is no way back, and a process that serves is there already. */
static void close_sandbox(const struct options *o) {
  static int closed;
  if (closed++) return;
  sandbox_close(!device_is_open() ? SANDBOX_ALONE : o->scratch ? SANDBOX_COMPILING_DRIVER : SANDBOX_DRIVER);
}

static int measure_candidates(struct bench *bench, const struct options *o, const struct tilth_runtime *rt) {
  static struct kernels kernels;
  struct noise noise;
  if (device_open(bench) || noise_open(&noise, o, rt)) return -1;
  close_sandbox(o);
  report_calibration(noise_wait(&noise, noise_measure(&noise)), noise.patience); /* while no candidate can have a hand in it */
  judge_wait(bench);
  procstate_remember(bench);
  if (gather(o, bench, &kernels)) return -1;
  procstate_restore();
  if (o->finalists) in_chosen_order(o, &kernels);
  report_module(kernels.all, kernels.modules, kernels.n);
  return (o->finalists ? finalists_race : measure_all)(bench, &noise, kernels.all, kernels.n);
}

/* The kernel has number 0, whichever it was among others. */
static int examine_one(struct bench *bench, const struct options *o) {
  static struct kernels kernels;
  if (device_open(bench)) return -1;
  close_sandbox(o);
  int wanted = examine_rehearse(bench);
  if (wanted <= 0) return wanted;
  if (gather(o, bench, &kernels)) return -1;
  report_module(kernels.all, kernels.modules, kernels.n);
  if (kernels.n > 0) return examine_candidate(bench, kernels.all[0], 0);
  report_error("the kernel to be examined is not there");
  return -1;
}

static int compute(struct bench *bench, const struct tilth_module *reference) {
  sandbox_close(SANDBOX_ALONE);
  return examine_reference(bench, reference->kernels);
}

/* Carries out a command line. What it took of memory is given back where another one follows. */
static int run(const struct options *o, const struct tilth_runtime *rt) {
  static struct bench bench;
  void *object;
  report_start(-1);
  const struct tilth_module *reference = module_load(o->reference, &object);
  if (!reference || bench_open(&bench, o, rt, reference)) return -1;
  fault_watch(-1, NULL);
  fault_catch(&bench);
  report_workload(bench.args, bench.n_args);
  judge_wait(&bench);
  if (judge_share(&bench)) return -1;
  if (o->compute ? compute(&bench, reference) : o->examine ? examine_one(&bench, o) : measure_candidates(&bench, o, rt)) return -1;
  report_done();
  if (o->serve) {
    device_close(&bench);
    bench_close(&bench);
    judge_unshare();
    module_unload(object);
  }
  return 0;
}

static int parse(struct options *o, int argc, char **argv) {
  const char *wrong;
  if (options_parse(o, argc, argv, &wrong) == 0) return 0;
  report_error("bad argument: %s", wrong);
  return -1;
}

/* Reads the next command line. A serving process has prepared its device before. */
static int wait_for_plan(struct options *o) {
  int argc;
  char **argv;
  int32_t threads = o->threads;
  if (device_ready(o)) return -1;
  report_ready();
  if (judge_arguments(&argc, &argv) || parse(o, argc, argv)) return -1;
  if (o->threads != threads || o->serve) {
    report_error("the process has %d threads, and %d are wanted", threads, o->threads);
    return -1;
  }
  o->serve = 1;
  return 0;
}

/* Executes command lines until one fails or the input ends. */
static int serve(struct options *o, const struct tilth_runtime *rt) {
  while (wait_for_plan(o) == 0 && run(o, rt) == 0) continue;
  return -1;
}

/* Keeps libraries that kernels call from starting threads when they are loaded. The sandbox forbids threads, and kernels use the pool's. */
static void calm_libraries(void) {
  setenv("OMP_NUM_THREADS", "1", 1);
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
}

int main(int argc, char **argv) {
  struct options o;
  const char *unfit = tilth_vectors_unfit();
  calm_libraries();
  if (report_open() || judge_open()) return 2;
  if (unfit) {
    report_error("%s", unfit);
    return 1;
  }
  if (parse(&o, argc, argv)) return 2;
  if (tilth_tiles_permit()) {
    report_error("asking the kernel for the use of tiles: %s; candidates need a processor with AMX and Linux 5.16 or later", strerror(errno));
    return 1;
  }
  tilth_tiles_configure(); /* this thread is a worker, too */
  struct tilth_pool *pool = tilth_pool_create(o.threads);
  if (!pool) {
    report_error("starting %d threads: %s", o.threads, strerror(errno));
    return 1;
  }
  const struct tilth_runtime *rt = tilth_pool_runtime(pool);
  _exit((o.serve ? serve(&o, rt) : run(&o, rt)) ? 1 : 0); /* nothing that candidates left to be run at the end */
}
