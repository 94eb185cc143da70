/* Fork-join on a generation counter. Between regions workers spin for a short while, because in a model the next region is
 * microseconds away, and then sleep on a futex, so that an idle process costs nothing. */
#define _GNU_SOURCE
#include "pool.h"

#include "spread.h"
#include "tiles.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LINE 64
#define SPIN_NS 100000
#define SPINS_PER_CLOCK 32 /* the clock is read once in so many pauses */

struct worker {
  struct tilth_pool *pool;
  int32_t index;
  pthread_t thread;
};

struct tilth_pool {
  struct tilth_runtime runtime; /* first: kernels hold a pointer to it */
  tilth_body body;
  void *closure;
  int64_t n;
  struct worker *others;    /* workers 1, 2, ... */
  struct tilth_seat *seats; /* theirs */
  int stopping;
  _Alignas(LINE) _Atomic uint32_t generation; /* of the region to run; workers wait for it to change */
  _Atomic uint32_t sleepers;
  _Alignas(LINE) _Atomic uint32_t pending; /* workers that have not finished the region */
  _Atomic uint32_t caller_sleeps;
};

static void futex_wait(_Atomic uint32_t *word, uint32_t value) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake_all(_Atomic uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0); }

static void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory"); /* yield is a no-op on most cores */
#else
  __asm__ volatile("" ::: "memory");
#endif
}

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Spins until *word differs from value (when until_differs) or equals it (otherwise). 0 when the time is up first. */
static int spin(_Atomic uint32_t *word, uint32_t value, int until_differs) {
  int64_t deadline = now_ns() + SPIN_NS;
  do {
    for (int k = 0; k < SPINS_PER_CLOCK; k++) {
      if ((atomic_load_explicit(word, memory_order_acquire) != value) == until_differs) return 1;
      relax();
    }
  } while (now_ns() < deadline);
  return 0;
}

/* Waits for a region after `seen`. The sleeper is counted before the kernel compares the word, and the caller changes the
 * word before it looks at the count, so one of the two always notices the other. */
static uint32_t wait_for_region(struct tilth_pool *pool, uint32_t seen) {
  if (!spin(&pool->generation, seen, 1)) {
    atomic_fetch_add(&pool->sleepers, 1);
    while (atomic_load(&pool->generation) == seen) futex_wait(&pool->generation, seen);
    atomic_fetch_sub(&pool->sleepers, 1);
  }
  return atomic_load_explicit(&pool->generation, memory_order_acquire);
}

static void run_share(struct tilth_pool *pool, int32_t worker) {
  int64_t workers = pool->runtime.workers;
  int64_t share = pool->n / workers, rest = pool->n % workers;
  int64_t begin = worker * share + (worker < rest ? worker : rest);
  int64_t end = begin + share + (worker < rest);
  if (begin < end) pool->body(pool->closure, begin, end, worker);
}

static void *work(void *argument) {
  struct worker *self = argument;
  struct tilth_pool *pool = self->pool;
  struct tilth_seat *seat = &pool->seats[self->index - 1];
  uint32_t seen = 0;
  tilth_tiles_configure();
  for (;;) {
    seen = wait_for_region(pool, seen);
    if (pool->stopping) return NULL;
    tilth_sit_down(seat);
    run_share(pool, self->index);
    if (atomic_fetch_sub(&pool->pending, 1) == 1 && atomic_load(&pool->caller_sleeps)) futex_wake_all(&pool->pending);
  }
}

static void start_region(struct tilth_pool *pool) {
  atomic_store_explicit(&pool->pending, (uint32_t)pool->runtime.workers - 1, memory_order_relaxed);
  atomic_fetch_add(&pool->generation, 1);
  if (atomic_load(&pool->sleepers)) futex_wake_all(&pool->generation);
}

static void finish_region(struct tilth_pool *pool) {
  if (spin(&pool->pending, 0, 0)) return;
  atomic_store(&pool->caller_sleeps, 1);
  for (uint32_t left; (left = atomic_load(&pool->pending)) != 0;) futex_wait(&pool->pending, left);
  atomic_store(&pool->caller_sleeps, 0);
}

static void parallel(const struct tilth_runtime *runtime, tilth_body body, void *closure, int64_t n) {
  struct tilth_pool *pool = (struct tilth_pool *)runtime;
  if (n <= 1 || runtime->workers == 1) {
    if (n > 0) body(closure, 0, n, 0);
    return;
  }
  pool->body = body, pool->closure = closure, pool->n = n;
  tilth_spread(pool->seats, runtime->workers - 1);
  start_region(pool);
  run_share(pool, 0);
  finish_region(pool);
  tilth_return_home(pool->seats, runtime->workers - 1);
}

/* The process's signals are not the workers' business: a Go program, say, must not run its handlers on them. Faults are. */
static int start_thread(struct worker *w) {
  static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
  sigset_t all, before;
  sigfillset(&all);
  for (unsigned k = 0; k < sizeof faults / sizeof *faults; k++) sigdelset(&all, faults[k]);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&w->thread, NULL, work, w);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}

static void stop(struct tilth_pool *pool, int32_t started) {
  pool->stopping = 1;
  start_region(pool);
  for (int32_t k = 0; k < started; k++) pthread_join(pool->others[k].thread, NULL);
  free(pool->others);
  free(pool->seats);
  free(pool);
}

struct tilth_pool *tilth_pool_create(int32_t workers) {
  struct tilth_pool *pool = aligned_alloc(LINE, sizeof *pool);
  size_t n = workers > 0 ? workers : 0;
  struct worker *others = calloc(n, sizeof *others);
  struct tilth_seat *seats = aligned_alloc(LINE, n * sizeof *seats);
  if (!pool || !others || !seats || workers < 1) {
    free(pool), free(others), free(seats);
    errno = workers < 1 ? EINVAL : ENOMEM;
    return NULL;
  }
  memset(seats, 0, n * sizeof *seats);
  *pool = (struct tilth_pool){.runtime = {workers, parallel}, .others = others, .seats = seats};
  for (int32_t k = 0; k < workers - 1; k++) {
    others[k] = (struct worker){.pool = pool, .index = k + 1};
    int error = start_thread(&others[k]);
    if (error) {
      stop(pool, k);
      errno = error;
      return NULL;
    }
  }
  return pool;
}

const struct tilth_runtime *tilth_pool_runtime(const struct tilth_pool *pool) { return &pool->runtime; }

pthread_t tilth_pool_thread(const struct tilth_pool *pool, int32_t worker) { return pool->others[worker - 1].thread; }

void tilth_pool_destroy(struct tilth_pool *pool) {
  if (pool) stop(pool, pool->runtime.workers - 1);
}
