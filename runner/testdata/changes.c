/* Kernels that change their process, so that those after them would be slow or wrong. A call that is refused leaves the result right; one
 * that succeeds spoils it. -DKERNELS=K(name),... selects them. */
#define _GNU_SOURCE
#include "workload.h"

#include <fcntl.h>
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SUCCEEDS(call) \
  if ((call) >= 0) Y[0] = 1e9
#define SYSCALL(name, ...) SUCCEEDS(syscall(SYS_##name, __VA_ARGS__))

static void pack(const struct tilth_runtime *rt, void *const *args, void *packed) { memcpy(packed, args[1], 4 * INNER); }

static void waste(int unused) {
  for (volatile int k = 0; k < 100000; k++) continue;
}

static cpu_set_t one_processor(void) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  return one;
}

KERNEL(confines_itself) {
  good(rt, args, prepared, workspace);
  cpu_set_t one = one_processor();
  SUCCEEDS(sched_setaffinity(0, sizeof one, &one));
  SUCCEEDS(sched_setaffinity(gettid(), sizeof one, &one));
}

KERNEL(handles_signals) {
  good(rt, args, prepared, workspace);
  struct sigaction action = {.sa_handler = waste};
  stack_t stack = {.ss_flags = SS_DISABLE};
  SUCCEEDS(sigaction(SIGSEGV, &action, NULL));
  SUCCEEDS(sigaction(SIGALRM, &action, NULL));
  SUCCEEDS(sigaltstack(&stack, NULL));
}

KERNEL(starts_timers) {
  good(rt, args, prepared, workspace);
  struct itimerval often = {{0, 1000}, {0, 1000}};
  timer_t timer;
  for (int which = 0; which < 3; which++) SUCCEEDS(setitimer(which, &often, NULL));
  SUCCEEDS(timer_create(CLOCK_MONOTONIC, NULL, &timer));
}

KERNEL(limits_itself) {
  good(rt, args, prepared, workspace);
  struct rlimit least = {1, 1};
  SUCCEEDS(setrlimit(RLIMIT_CPU, &least));
  SYSCALL(setrlimit, RLIMIT_NOFILE, &least);
  SYSCALL(prlimit64, 0, RLIMIT_AS, &least, NULL);
}

KERNEL(yields_to_others) {
  good(rt, args, prepared, workspace);
  struct sched_param idle = {0};
  SUCCEEDS(setpriority(PRIO_PROCESS, 0, 19));
  SUCCEEDS(sched_setscheduler(0, SCHED_IDLE, &idle));
  SUCCEEDS(sched_setparam(0, &idle));
  SYSCALL(ioprio_set, 1, 0, 3 << 13);
  SYSCALL(sched_setattr, 0, &idle, 0);
}

KERNEL(places_memory) {
  good(rt, args, prepared, workspace);
  unsigned long node = 1;
  SYSCALL(set_mempolicy, 2, &node, 64);
  SYSCALL(mbind, 0, 4096, 2, &node, 64, 0);
  SUCCEEDS(mlockall(MCL_FUTURE));
}

KERNEL(splits_pages) {
  good(rt, args, prepared, workspace);
  char *page = (char *)((uintptr_t)args[2] & -4096);
  SUCCEEDS(madvise(page, 4096, MADV_NOHUGEPAGE));
  SUCCEEDS(madvise(page, 4096, MADV_DONTNEED));
  SUCCEEDS(madvise(page, 4096, 20)); /* MADV_COLD */
}

KERNEL(slows_its_threads) {
  good(rt, args, prepared, workspace);
  SUCCEEDS(prctl(PR_SET_TIMERSLACK, 1000000000));
  SUCCEEDS(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
  SUCCEEDS(prctl(53, 0, 1 << 2, 0, 0)); /* PR_SET_SPECULATION_CTRL */
#ifdef SYS_arch_prctl
  SYSCALL(arch_prctl, 0x1012, 0); /* ARCH_SET_CPUID */
#endif
  SYSCALL(membarrier, 16, 0, 0);
  SYSCALL(rseq, NULL, 32, 1, 0);
}

KERNEL(makes_pipes) {
  good(rt, args, prepared, workspace);
  int ends[2];
  SUCCEEDS(pipe(ends));
  for (int fd = 0; fd < 256; fd++) SUCCEEDS(fcntl(fd, F_SETFL, O_NONBLOCK));
}

KERNEL(starts_threads) {
  good(rt, args, prepared, workspace);
  pthread_t thread;
  SUCCEEDS(-pthread_create(&thread, NULL, (void *(*)(void *))waste, NULL));
}

/* What no filter of calls can refuse. */
KERNEL(rounds) {
  good(rt, args, prepared, workspace);
  fesetround(FE_TOWARDZERO);
}

#if defined(__x86_64__)
static uint64_t mode(void) { return __builtin_ia32_stmxcsr() & ~0x3fu; }
static void flush(void) { __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040); }
#elif defined(__aarch64__)
static uint64_t mode(void) { return __builtin_aarch64_get_fpcr(); }
static void flush(void) { __builtin_aarch64_set_fpcr(1 << 24); }
#else
static uint64_t mode(void) { return fegetround(); }
static void flush(void) { fesetround(FE_UPWARD); }
#endif

KERNEL(flushes_denormals) {
  good(rt, args, prepared, workspace);
  flush();
}

static void flush_some(void *closure, int64_t begin, int64_t end, int32_t worker) {
  if (worker == rand() % 2) flush();
}

KERNEL(flushes_on_workers) {
  good(rt, args, prepared, workspace);
  for (int k = 0; k < 8; k++) rt->parallel(rt, flush_some, NULL, rt->workers);
}

KERNEL(blocks_signals) {
  good(rt, args, prepared, workspace);
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
}

static volatile pid_t confined;

static void confine(void *closure, int64_t begin, int64_t end, int32_t worker) {
  cpu_set_t one = one_processor();
  if (worker > 0 && sched_setaffinity(gettid(), sizeof one, &one) == 0) confined = gettid();
}

static int is_confined(void) {
  cpu_set_t at;
  return confined && sched_getaffinity(confined, sizeof at, &at) == 0 && CPU_COUNT(&at) == 1;
}

/* On a busy machine, the pool may have moved a worker for the call, and returns it to its processors afterwards. */
KERNEL(confines_workers) {
  good(rt, args, prepared, workspace);
  for (int k = 0; k < 1000 && !is_confined(); k++) rt->parallel(rt, confine, NULL, rt->workers);
}

KERNEL(keeps_descriptors) {
  good(rt, args, prepared, workspace);
  while (dup(2) >= 0) continue;
}

KERNEL(closes_descriptors) {
  good(rt, args, prepared, workspace);
  close(1);
}

static void crawls(const struct tilth_runtime *rt, tilth_body body, void *closure, int64_t n) {
  for (int64_t k = 0; k < n; k++) body(closure, k, k + 1, 0);
  waste(0);
}

KERNEL(replaces_the_runtime) {
  good(rt, args, prepared, workspace);
  ((struct tilth_runtime *)rt)->parallel = crawls;
}

#if defined(__x86_64__)
enum { MODE = 0x1f80 };
#else
enum { MODE = 0 };
#endif

static void audit_mode(void *y, int64_t begin, int64_t end, int32_t worker) {
  if (mode() != MODE) *(volatile float *)y = 1e9;
}

/* An honest neighbour, whose result is right only in a process as it was at the start. */
#define AUDIT(name) \
  KERNEL(name) { \
    cpu_set_t here; \
    sigset_t blocked; \
    int fd = dup(2); \
    close(fd); \
    good(rt, args, prepared, workspace); \
    rt->parallel(rt, audit_mode, args[2], rt->workers); \
    SUCCEEDS(fd == 3 ? -1 : 0); \
    SUCCEEDS(sched_getaffinity(0, sizeof here, &here) == 0 && CPU_COUNT(&here) == PROCESSORS ? -1 : 0); \
    SUCCEEDS(pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0 && !sigismember(&blocked, SIGABRT) ? -1 : 0); \
  }
AUDITS

static const struct tilth_pack packed = {4 * INNER, pack};
static const struct tilth_pack *const packs[] = {&packed};
#define K(name) {#name, 1, packs, name, 128, 64}
static const struct tilth_kernel kernels[] = {KERNELS};
const struct tilth_module tilth_module = {TILTH_ABI, 3, args, sizeof kernels / sizeof *kernels, kernels};
