/* machine THREADS BYTES...: prints the multiply-add rate of all threads together in FLOP/s, and for each number of bytes the rate in
 * bytes/s at which they read so many, a part each, again and again: the best of several rounds. VECTOR_BYTES is the width of a
 * vector register. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef float vector __attribute__((vector_size(VECTOR_BYTES)));

enum { READS = 100, MULTIPLIES = 60, STEPS = 500000, LANES = VECTOR_BYTES / 4, ACCUMULATORS = 12, PIECE = 4096 };
static const size_t most_bytes = 192 << 20;      /* of one thread */
static const size_t bytes_a_round = 32 << 20; /* read by one thread */

static pthread_barrier_t start, end;
static size_t reading; /* bytes of each thread; 0 = multiply */
static volatile float sink;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Where a vector that may have changed lies: constraints for registers differ from one architecture to the next, and a load beside twelve
 * multiply-adds takes nothing. */
#ifdef __x86_64__
#define ANYWHERE "+v"
#else
#define ANYWHERE "+m"
#endif

/* Twelve independent sums hide the latency of a multiply-add on every register file. */
static void multiply(void) {
  vector x = {0}, a0 = x, a1 = x, a2 = x, a3 = x, a4 = x, a5 = x, a6 = x, a7 = x, a8 = x, a9 = x, a10 = x, a11 = x;
  x += sink;
  for (long k = 0; k < STEPS; k++) {
    a0 += x * x, a1 += x * x, a2 += x * x, a3 += x * x, a4 += x * x, a5 += x * x;
    a6 += x * x, a7 += x * x, a8 += x * x, a9 += x * x, a10 += x * x, a11 += x * x;
    __asm__ volatile("" : ANYWHERE(x));
  }
  vector sum = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;
  sink = sum[0];
}

/* Reads a round's bytes from an offset on, again from the beginning where they end; returns where the next round goes on, so that
 * what a cache does not hold has left it when it is read again. */
static size_t read_round(const char *data, size_t bytes, size_t at) {
  vector a = {0}, b = a, c = a, d = a, e = a, f = a, g = a, h = a;
  for (size_t left = bytes_a_round; left > 0;) {
    size_t part = bytes - at < left ? bytes - at : left;
    for (const vector *v = (const vector *)(data + at), *last = v + part / sizeof *v; v < last; v += 8)
      a += v[0], b += v[1], c += v[2], d += v[3], e += v[4], f += v[5], g += v[6], h += v[7];
    __asm__ volatile("" : "+r"(data));
    left -= part;
    at = (at + part) % bytes;
  }
  a += b + c + d + e + f + g + h;
  sink = a[0];
  return at;
}

/* A worker's span of the current round. */
struct span {
  int worker;
  double begin, end;
};

/* Keeps a worker on a processor of its own: the system may wake two on the same one. */
static void pin(int number) {
  cpu_set_t allowed, own;
  if (sched_getaffinity(0, sizeof allowed, &allowed)) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, &allowed) || number-- > 0) continue;
    CPU_ZERO(&own);
    CPU_SET(cpu, &own);
    pthread_setaffinity_np(pthread_self(), sizeof own, &own);
    return;
  }
}

static void *work(void *argument) {
  struct span *own = argument;
  pin(own->worker);
  char *data = aligned_alloc(2 << 20, most_bytes);
  size_t at = 0;
  if (!data) exit(1);
  memset(data, 0, most_bytes);
  for (;;) {
    pthread_barrier_wait(&start);
    own->begin = now();
    if (reading) at = read_round(data, reading, at % reading);
    else multiply();
    own->end = now();
    pthread_barrier_wait(&end);
  }
}

/* Seconds from the first worker's begin to the last one's end, in the best round. Many short rounds find the peak of a machine that
 * others use too: a round is shorter than what the system gives a process at a time. */
static double fastest(const struct span *spans, int threads, int rounds) {
  double best = 1e30;
  for (int k = 0; k < rounds; k++) {
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
    if (!spans || (spans[k].worker = k, pthread_create(&thread, NULL, work, &spans[k]))) return 1;
  double flop = 2.0 * STEPS * LANES * ACCUMULATORS * threads / fastest(spans, threads, MULTIPLIES);
  printf("%.6g", flop);
  for (int k = 2; k < argc; k++) {
    reading = strtoull(argv[k], NULL, 10) / threads;
    reading -= reading % PIECE;
    if (!reading || reading > most_bytes) reading = most_bytes;
    double bytes = (double)bytes_a_round * threads;
    fastest(spans, threads, READS); /* brings the data where it stays */
    printf(" %.6g", bytes / fastest(spans, threads, READS));
  }
  printf("\n");
  return 0;
}
