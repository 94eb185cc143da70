/* Checks the thread pool and prints what a parallel region costs, in nanoseconds. Exit status 1 names what is wrong. */
#define _GNU_SOURCE
#include "pool.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1000, WORKERS = 8 };

struct tally {
  int count[MOST];
  int workers_seen[WORKERS];
};

static void count(void *closure, int64_t begin, int64_t end, int32_t worker) {
  struct tally *t = closure;
  for (int64_t i = begin; i < end; i++) t->count[i]++;
  t->workers_seen[worker]++;
}

static void nothing(void *closure, int64_t begin, int64_t end, int32_t worker) {}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void check(int ok, const char *what, int workers, int64_t n) {
  if (ok) return;
  printf("%s with %d workers, n = %ld\n", what, workers, (long)n);
  exit(1);
}

static void check_pool(int workers) {
  struct tilth_pool *pool = tilth_pool_create(workers);
  check(pool != NULL, "pool does not start", workers, 0);
  const struct tilth_runtime *rt = tilth_pool_runtime(pool);
  for (int64_t n = 0; n < MOST; n = n * 3 / 2 + 1) {
    struct tally t = {0};
    for (int round = 0; round < 50; round++) rt->parallel(rt, count, &t, n);
    for (int i = 0; i < MOST; i++) check(t.count[i] == (i < n ? 50 : 0), "iteration not run exactly once", workers, n);
    for (int w = 0; w < WORKERS; w++) check(w < workers || t.workers_seen[w] == 0, "worker out of range", workers, n);
  }
  struct timespec pause = {0, 1000000}; /* longer than workers spin, so that they sleep */
  for (int round = 0; round < 20; round++) {
    struct tally t = {0};
    nanosleep(&pause, NULL);
    rt->parallel(rt, count, &t, MOST);
    for (int i = 0; i < MOST; i++) check(t.count[i] == 1, "iteration lost after sleep", workers, MOST);
  }
  tilth_pool_destroy(pool);
}

static pid_t thread_of_worker; /* of worker 1 */
static cpu_set_t where_allowed;  /* it was to run in its last region */

static void look_around(void *closure, int64_t begin, int64_t end, int32_t worker) {
  if (worker != 1) return;
  thread_of_worker = gettid();
  sched_getaffinity(0, sizeof where_allowed, &where_allowed);
}

/* A worker whose last region ran on the caller's processor is kept off it for the next one, and let go afterwards. The check is
 * of where threads may run, which is the pool's to say, and not of where they do run, which is the kernel's. */
static void check_spread(void) {
  cpu_set_t everywhere, here, now;
  sched_getaffinity(0, sizeof everywhere, &everywhere);
  if (CPU_COUNT(&everywhere) < 2) return;
  struct tilth_pool *pool = tilth_pool_create(2);
  const struct tilth_runtime *rt = tilth_pool_runtime(pool);
  int mine = sched_getcpu();
  CPU_ZERO(&here);
  CPU_SET(mine, &here);
  sched_setaffinity(0, sizeof here, &here); /* of this thread; the worker's is as before */
  rt->parallel(rt, look_around, NULL, 2);
  for (int round = 0; round < 100; round++) {
    sched_setaffinity(thread_of_worker, sizeof here, &here);
    rt->parallel(rt, look_around, NULL, 2); /* on this processor, for want of another */
    check(CPU_EQUAL(&where_allowed, &here), "worker was moved though it could go nowhere", 2, round);
    sched_setaffinity(thread_of_worker, sizeof everywhere, &everywhere);
    rt->parallel(rt, look_around, NULL, 2);
    check(!CPU_ISSET(mine, &where_allowed), "worker may stay on the caller's processor", 2, round);
    sched_getaffinity(thread_of_worker, sizeof now, &now);
    check(CPU_EQUAL(&now, &everywhere), "worker was not let go", 2, round);
  }
  sched_setaffinity(0, sizeof everywhere, &everywhere);
  tilth_pool_destroy(pool);
}

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 1000;
  int threads = argc > 2 ? atoi(argv[2]) : 2;
  for (int workers = 1; workers <= WORKERS; workers *= 2) check_pool(workers);
  check_spread();
  check(tilth_pool_create(0) == NULL, "pool starts", 0, 0);
  struct tilth_pool *pool = tilth_pool_create(threads);
  const struct tilth_runtime *rt = tilth_pool_runtime(pool);
  double begin = seconds();
  for (int k = 0; k < rounds; k++) rt->parallel(rt, nothing, NULL, threads);
  printf("%.0f\n", (seconds() - begin) / rounds * 1e9);
  tilth_pool_destroy(pool);
  return 0;
}
