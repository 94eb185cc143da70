/* Threads that share models, or have their own, on a plan by hand: y = 2 * x, in parallel. Exit status 1 names what is wrong;
 * ThreadSanitizer looks for races. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

enum { MOST = 1024, THREADS = 4, ROUNDS = 50, WORKERS = 3 };

struct doubling {
  const int64_t *x;
  int64_t *y;
};

static void twice(void *closure, int64_t begin, int64_t end, int32_t worker) {
  const struct doubling *d = closure;
  for (int64_t i = begin; i < end; i++) d->y[i] = 2 * d->x[i];
}

static void run(const struct tilth_runtime *rt, char *arena, char *weights, double *seconds) {
  struct doubling d = {(const int64_t *)(arena + 64), (int64_t *)(arena + 64 + 8 * MOST)};
  rt->parallel(rt, twice, &d, *(const int64_t *)arena);
  if (seconds) seconds[0] = 0;
}

static const int64_t shape[] = {MOST};
static const struct tilth_tensor inputs[] = {{"x", TILTH_TYPE_INT64, 1, shape, 8 * MOST}}, outputs[] = {{"y", TILTH_TYPE_INT64, 1, shape, 8 * MOST}};
static const struct tilth_place input_places[] = {{0, 64}}, output_places[] = {{0, 64 + 8 * MOST}};
static const struct tilth_extent extents[] = {{"n", 0, MOST, 1, 0}};
static const struct tilth_varying varying[] = {{0, 0, 0, 1, 0}};
static const char *const call_names[] = {"twice"};
const struct tilth_plan tilth_plan = {
    .threads = WORKERS, .arena_bytes = 64 + 16 * MOST, .n_inputs = 1, .n_outputs = 1, .n_calls = 1, .inputs = inputs, .outputs = outputs,
    .input_places = input_places, .output_places = output_places, .n_extents = 1, .extents = extents, .n_varying_inputs = 1,
    .n_varying_outputs = 1, .varying_inputs = varying, .varying_outputs = varying, .call_names = call_names, .run = run,
};

static void fail(const char *what) {
  printf("%s\n", what);
  exit(1);
}

/* One user of a model: chooses the length, writes the input, runs and reads the output, while nobody else may. */
static void use(struct tilth_model *m, int64_t seed) {
  int64_t n = 1 + seed % MOST, got;
  tilth_lock(m);
  if (tilth_set_extent(m, 0, n)) fail("the extent cannot be set");
  int64_t *x = tilth_input(m, 0);
  for (int64_t i = 0; i < n; i++) x[i] = seed + i;
  tilth_run(m);
  const int64_t *y = tilth_output(m, 0);
  if (tilth_output_shape(m, 0, &got) || got != n) fail("another thread chose the extent");
  for (int64_t i = 0; i < n; i++)
    if (y[i] != 2 * (seed + i)) fail("another thread wrote the input");
  tilth_unlock(m);
}

static struct tilth_model *shared;
static _Atomic int next;

static void *share(void *unused) {
  for (int round = 0; round < ROUNDS; round++) use(shared, atomic_fetch_add(&next, 1));
  return unused;
}

/* Nobody holds the model: calls wait for each other all the same. */
static void *call(void *unused) {
  int64_t extent;
  double seconds;
  for (int round = 0; round < ROUNDS; round++) {
    tilth_run(shared);
    tilth_profile(shared, &seconds);
    if (tilth_set_extent(shared, 0, round) || tilth_set_extent(shared, 0, MOST + 1) != -1) fail("bounds are not kept");
    if (tilth_output_shape(shared, 0, &extent) || extent < 0 || extent > MOST) fail("the extent is torn");
  }
  return unused;
}

static void *own(void *options) {
  for (int round = 0; round < ROUNDS / 10; round++) {
    struct tilth_model *m = tilth_open_with(NULL, 0, options);
    if (!m) fail(tilth_last_error());
    for (int k = 0; k < ROUNDS; k++) use(m, k);
    tilth_close(m);
  }
  return NULL;
}

static void together(void *(*what)(void *), void *argument) {
  pthread_t threads[THREADS];
  for (int k = 0; k < THREADS; k++)
    if (pthread_create(&threads[k], NULL, what, argument)) fail("no thread");
  for (int k = 0; k < THREADS; k++) pthread_join(threads[k], NULL);
}

int main(void) {
  struct tilth_options two = {.size = sizeof two, .threads = 2};
  shared = tilth_open(NULL, 0);
  if (!shared || tilth_threads(shared) != WORKERS) fail("the model is not open on all its threads");
  together(share, NULL);
  together(call, NULL);
  tilth_close(shared);
  together(own, NULL);
  together(own, &two);
  return 0;
}
