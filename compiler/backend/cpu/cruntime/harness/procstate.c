#define _GNU_SOURCE
#include "procstate.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "device.h"
#include "fault.h"
#include "tiles.h"

#define MOST_SIGNALS 65

struct worker_state {
  pid_t thread;
  uint64_t float_mode;
  sigset_t blocked;
  cpu_set_t cpus; /* all zero if it cannot be read */
};

/* Calls that the sandbox refuses leave their parts zero, always. */
struct process_state {
  int timers[3]; /* whether they run */
  struct rlimit limits[RLIM_NLIMITS];
  void (*handlers[MOST_SIGNALS])(int);
  int priority, policy, free_descriptor;
};

static struct {
  const struct tilth_runtime *runtime;
  struct tilth_runtime functions;
  struct worker_state *before, *now;
  struct process_state process;
} procstate;

/* Rounding, denormals and masked exceptions; not the exceptions that were raised. */
static uint64_t float_mode(void) {
#if defined(__x86_64__)
  uint16_t x87;
  __asm__ volatile("fnstcw %0" : "=m"(x87));
  return (uint64_t)x87 << 32 | (__builtin_ia32_stmxcsr() & ~0x3fu);
#elif defined(__aarch64__)
  uint64_t mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
#elif defined(__arm__) && defined(__VFP_FP__) && !defined(__SOFTFP__)
  uint32_t mode;
  __asm__ volatile("vmrs %0, fpscr" : "=r"(mode));
  return mode & 0x07f79f00;
#elif defined(__riscv_flen)
  uint64_t mode;
  __asm__ volatile("frrm %0" : "=r"(mode));
  return mode;
#else
  return 0;
#endif
}

static void set_float_mode(uint64_t mode) {
#if defined(__x86_64__)
  uint16_t x87 = (uint16_t)(mode >> 32);
  __asm__ volatile("fldcw %0" : : "m"(x87));
  __builtin_ia32_ldmxcsr((uint32_t)mode);
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"(mode));
#elif defined(__arm__) && defined(__VFP_FP__) && !defined(__SOFTFP__)
  __asm__ volatile("vmsr fpscr, %0" : : "r"((uint32_t)mode));
#elif defined(__riscv_flen)
  __asm__ volatile("fsrm %0" : : "r"(mode));
#else
  (void)mode;
#endif
}

/* Reads a worker's state, and clears what instructions of others would have to wait for. */
static void read_worker(void *closure, int64_t begin, int64_t end, int32_t worker) {
  struct worker_state *s = (struct worker_state *)closure + worker;
  (void)begin, (void)end;
  s->thread = gettid();
  s->float_mode = float_mode();
  pthread_sigmask(SIG_SETMASK, NULL, &s->blocked);
#ifdef __AVX__
  __builtin_ia32_vzeroupper();
#endif
  tilth_tiles_configure();
}

/* The pool moves its threads during a region, so their processors are read from outside. */
static void read_workers(struct worker_state *states) {
  memset(states, 0, procstate.functions.workers * sizeof *states);
  procstate.functions.parallel(procstate.runtime, read_worker, states, procstate.functions.workers);
  for (int32_t k = 0; k < procstate.functions.workers; k++)
    if (sched_getaffinity(states[k].thread, sizeof states[k].cpus, &states[k].cpus)) CPU_ZERO(&states[k].cpus);
}

static void restore_worker(void *closure, int64_t begin, int64_t end, int32_t worker) {
  const struct worker_state *s = (const struct worker_state *)closure + worker;
  (void)begin, (void)end;
  set_float_mode(s->float_mode);
  pthread_sigmask(SIG_SETMASK, &s->blocked, NULL);
}

static int free_descriptor(void) {
  int fd = dup(STDERR_FILENO);
  if (fd >= 0) close(fd);
  return fd;
}

static void read_process(struct process_state *s) {
  struct itimerval timer;
  struct sigaction action;
  memset(s, 0, sizeof *s);
  for (int k = 0; k < 3; k++)
    s->timers[k] = getitimer(k, &timer) == 0 && (timerisset(&timer.it_value) || timerisset(&timer.it_interval));
  for (int k = 0; k < RLIM_NLIMITS; k++) getrlimit(k, &s->limits[k]);
  for (int k = 1; k < MOST_SIGNALS; k++) {
    if (sigaction(k, NULL, &action) == 0) s->handlers[k] = action.sa_handler;
    else if (k == 1) break; /* all are refused */
  }
  s->priority = getpriority(PRIO_PROCESS, 0);
  s->policy = sched_getscheduler(0);
  s->free_descriptor = free_descriptor();
}

void procstate_remember(const struct bench *b) {
  if (device_is_open()) return; /* its driver changes the process as it likes */
  int32_t workers = b->runtime->workers;
  procstate.runtime = b->runtime, procstate.functions = *b->runtime;
  procstate.before = calloc(workers, sizeof *procstate.before), procstate.now = calloc(workers, sizeof *procstate.now);
  if (procstate.before && procstate.now) read_workers(procstate.before);
  else procstate.runtime = NULL;
}

void procstate_restore(void) {
  if (!procstate.runtime) return;
  procstate.functions.parallel(procstate.runtime, restore_worker, procstate.before, procstate.functions.workers);
  for (int32_t k = 0; k < procstate.functions.workers; k++) {
    const struct worker_state *w = &procstate.before[k];
    if (CPU_COUNT(&w->cpus) > 0) sched_setaffinity(w->thread, sizeof w->cpus, &w->cpus);
  }
  read_process(&procstate.process);
}

static const char *changed_worker(const struct worker_state *before, const struct worker_state *now) {
  if (now->float_mode != before->float_mode) return "the floating-point mode: rounding, denormals or exceptions";
  if (memcmp(&now->blocked, &before->blocked, sizeof now->blocked)) return "the blocked signals";
  if (memcmp(&now->cpus, &before->cpus, sizeof now->cpus)) return "the processors of a thread";
  return NULL;
}

static const char *changed_process(const struct process_state *before, const struct process_state *now) {
  if (memcmp(now->timers, before->timers, sizeof now->timers)) return "its timers";
  if (memcmp(now->limits, before->limits, sizeof now->limits)) return "its limits";
  if (memcmp(now->handlers, before->handlers, sizeof now->handlers)) return "its signal handlers";
  if (now->priority != before->priority || now->policy != before->policy) return "its priority";
  if (now->free_descriptor != before->free_descriptor) return "its open files";
  return NULL;
}

/* Candidates cannot move the first worker. If it has moved, the machine's administrator has moved all of them. */
static void accept_processors(void) {
  if (memcmp(&procstate.now->cpus, &procstate.before->cpus, sizeof procstate.now->cpus) == 0) return;
  for (int32_t k = 0; k < procstate.functions.workers; k++) procstate.before[k].cpus = procstate.now[k].cpus;
}

/* Returns what has changed since procstate_restore, or NULL. */
static const char *changed(void) {
  struct process_state now;
  if (procstate.runtime->parallel != procstate.functions.parallel || procstate.runtime->workers != procstate.functions.workers) return "the functions of the runtime";
  read_workers(procstate.now);
  accept_processors();
  for (int32_t k = 0; k < procstate.functions.workers; k++) {
    const char *what = changed_worker(&procstate.before[k], &procstate.now[k]);
    if (what) return what;
  }
  read_process(&now);
  return changed_process(&procstate.process, &now);
}

void procstate_end(void) {
  char text[128];
  const char *what = procstate.runtime ? changed() : NULL;
  if (!what) return;
  snprintf(text, sizeof text, "changes the process that it shares: %s", what);
  fault_report(text);
}
