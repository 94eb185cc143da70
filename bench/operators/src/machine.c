/* Prints the multiply-add rate of all threads together in FLOP/s, and the rate at which they read memory in bytes/s: the
 * best of several rounds. VECTOR_BYTES is the width of a vector register. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef float vector __attribute__((vector_size(VECTOR_BYTES)));

enum { ROUNDS = 5, STEPS = 2000000, LANES = VECTOR_BYTES / 4, ACCUMULATORS = 12 };
static const size_t bytes_each = 192 << 20;

static pthread_barrier_t start, end;
static int reading;
static volatile float sink;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Twelve independent sums hide the latency of a multiply-add on every register file. */
static void multiply(void) {
  vector x = {0}, a0 = x, a1 = x, a2 = x, a3 = x, a4 = x, a5 = x, a6 = x, a7 = x, a8 = x, a9 = x, a10 = x, a11 = x;
  x += sink;
  for (long k = 0; k < STEPS; k++) {
    a0 += x * x, a1 += x * x, a2 += x * x, a3 += x * x, a4 += x * x, a5 += x * x;
    a6 += x * x, a7 += x * x, a8 += x * x, a9 += x * x, a10 += x * x, a11 += x * x;
    __asm__ volatile("" : "+v"(x));
  }
  vector sum = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;
  sink = sum[0];
}

static void read_all(const vector *data) {
  vector a = {0}, b = a, c = a, d = a;
  for (size_t k = 0; k < bytes_each / sizeof *data; k += 4) a += data[k], b += data[k + 1], c += data[k + 2], d += data[k + 3];
  a += b + c + d;
  sink = a[0];
}

/* A worker's span of the current round. */
struct span {
  double begin, end;
};

static void *work(void *argument) {
  struct span *own = argument;
  vector *data = aligned_alloc(2 << 20, bytes_each);
  if (!data) exit(1);
  memset(data, 0, bytes_each);
  for (;;) {
    pthread_barrier_wait(&start);
    own->begin = now();
    if (reading) read_all(data);
    else multiply();
    own->end = now();
    pthread_barrier_wait(&end);
  }
}

/* Seconds from the first worker's begin to the last one's end, in the best round. */
static double fastest(const struct span *spans, int threads) {
  double best = 1e30;
  for (int k = 0; k < ROUNDS; k++) {
    pthread_barrier_wait(&start);
    pthread_barrier_wait(&end);
    double begin = spans[0].begin, last = spans[0].end;
    for (int i = 1; i < threads; i++) {
      if (spans[i].begin < begin) begin = spans[i].begin;
      if (spans[i].end > last) last = spans[i].end;
    }
    if (last - begin < best) best = last - begin;
  }
  return best;
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 1;
  pthread_t thread;
  pthread_barrier_init(&start, NULL, threads + 1);
  pthread_barrier_init(&end, NULL, threads + 1);
  struct span *spans = calloc(threads, sizeof *spans);
  for (int k = 0; k < threads; k++)
    if (!spans || pthread_create(&thread, NULL, work, &spans[k])) return 1;
  double flop = 2.0 * STEPS * LANES * ACCUMULATORS * threads / fastest(spans, threads);
  reading = 1;
  double bytes = (double)bytes_each * threads / fastest(spans, threads);
  printf("%.6g %.6g\n", flop, bytes);
  return 0;
}
