/* What the machine can do at best, on the threads of a model's pool: the scale to read a profile by. */
#include "peak.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

#if defined __AVX512F__ || __ARM_FEATURE_SVE_BITS >= 512
#define VECTOR_BYTES 64
#elif defined __AVX__ || __ARM_FEATURE_SVE_BITS == 256
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#ifdef __aarch64__ /* instructions of Neon, whose rate is that of SVE's in as many bits */
#define INTEGER_BYTES 16
#else
#define INTEGER_BYTES VECTOR_BYTES
#endif
#define LANES (VECTOR_BYTES / sizeof(float))
#define INTEGER_LANES (INTEGER_BYTES / sizeof(int))
typedef float vector __attribute__((vector_size(VECTOR_BYTES)));

/* As many independent sums as it takes to hide the latency of a multiply-add on every unit, in registers all of them: cores
 * with 16 registers have at most two units with a latency of 5 cycles, others at most four with one of 4. */
#if defined __AVX512F__ || defined __aarch64__
#define EACH_SUM(_) _(a) _(b) _(c) _(d) _(e) _(f) _(g) _(h) _(i) _(j) _(k) _(l) _(m) _(n) _(o) _(p)
#define SUMS 16
#else
#define EACH_SUM(_) _(a) _(b) _(c) _(d) _(e) _(f) _(g) _(h) _(i) _(j)
#define SUMS 10
#endif

#define TRIES 5
#define LEAST_SECONDS 2e-3
#define STREAM_BYTES (128 << 20) /* more than caches hold */
#define BLOCK 256

struct job {
  int64_t rounds;
  const char *bytes;
  float *sinks; /* one of 64 bytes for each worker, so that nothing is optimised away */
};

#ifndef __clang__
__attribute__((optimize("fp-contract=fast")))
#endif
static void multiply_add(void *closure, int64_t begin, int64_t end, int32_t worker) {
#ifdef __clang__
#pragma STDC FP_CONTRACT ON
#endif
  const struct job *job = closure;
  vector x, y;
  for (unsigned k = 0; k < LANES; k++) x[k] = 0.999999f, y[k] = 1e-6f;
#define START(s) vector s = y;
#define STEP(s) s = s * x + y;
#define SUM(s) total += s;
  EACH_SUM(START)
  for (int64_t round = 0; round < job->rounds; round++) { EACH_SUM(STEP) }
  vector total = x;
  EACH_SUM(SUM)
  job->sinks[16 * worker] = total[0];
}

/* A step of sums of products of small integers by the instructions that kernels have for it: TERMS products are added to each 32 bits
 * of a sum. The empty assembly keeps compilers from computing products once for all steps. */
typedef int words __attribute__((vector_size(INTEGER_BYTES)));
typedef short halves __attribute__((vector_size(INTEGER_BYTES)));
#ifdef __clang__
#define VPDPBUSD512 __builtin_ia32_vpdpbusd512
#define VPDPBUSD256 __builtin_ia32_vpdpbusd256
#define PMADDWD512(x, y) __builtin_ia32_pmaddwd512(x, y)
#else
#define VPDPBUSD512 __builtin_ia32_vpdpbusd_v16si
#define VPDPBUSD256 __builtin_ia32_vpdpbusd_v8si
#define PMADDWD512(x, y) __builtin_ia32_pmaddwd512_mask(x, y, (words){0}, (unsigned short)-1)
#endif
#if defined __AVX512VNNI__ && VECTOR_BYTES == 64
#define TERMS 4
#define DOT(s) s = (words)VPDPBUSD512(s, x, y);
#elif defined __AVXVNNI__ && VECTOR_BYTES == 32
#define TERMS 4
#define DOT(s) s = (words)VPDPBUSD256(s, x, y);
#elif defined __AVX512BW__ && VECTOR_BYTES == 64
#define TERMS 2
#define DOT(s) __asm__ volatile("" : "+v"(x)); s += (words)PMADDWD512((halves)x, (halves)y);
#elif defined __AVX2__ && VECTOR_BYTES == 32
#define TERMS 2
#define DOT(s) __asm__ volatile("" : "+x"(x)); s += (words)__builtin_ia32_pmaddwd256((halves)x, (halves)y);
#elif defined __SSE2__ && VECTOR_BYTES == 16
#define TERMS 2
#define DOT(s) __asm__ volatile("" : "+x"(x)); s += (words)__builtin_ia32_pmaddwd128((halves)x, (halves)y);
#elif defined __ARM_FEATURE_MATMUL_INT8
#define TERMS 8
#define DOT(s) __asm__("smmla %0.4s, %1.16b, %2.16b" : "+w"(s) : "w"(x), "w"(y));
#elif defined __ARM_FEATURE_DOTPROD
#define TERMS 4
#define DOT(s) __asm__("sdot %0.4s, %1.16b, %2.16b" : "+w"(s) : "w"(x), "w"(y));
#else
#define TERMS 0
#define DOT(s) s += x;
#endif

static void multiply_add_integers(void *closure, int64_t begin, int64_t end, int32_t worker) {
  const struct job *job = closure;
  words x, y;
  for (unsigned k = 0; k < INTEGER_LANES; k++) x[k] = 0, y[k] = (int)job->rounds;
#define START_INTEGERS(s) words s = y;
  EACH_SUM(START_INTEGERS)
  for (int64_t round = 0; round < job->rounds; round++) { EACH_SUM(DOT) }
  words total = x;
  EACH_SUM(SUM)
  job->sinks[16 * worker] = (float)total[0];
}

/* Reads blocks begin..end of 256 bytes. */
static void stream(void *closure, int64_t begin, int64_t end, int32_t worker) {
  const struct job *job = closure;
  typedef uint64_t words __attribute__((vector_size(VECTOR_BYTES)));
  words total = {0}, other = {0};
  const words *at = (const words *)(job->bytes + begin * BLOCK), *stop = (const words *)(job->bytes + end * BLOCK);
  for (; at < stop; at += 4) total ^= at[0] ^ at[1], other ^= at[2] ^ at[3];
  total ^= other;
  job->sinks[16 * worker] = (float)total[0];
}

/* The least seconds that a parallel loop takes. */
static double least(const struct tilth_runtime *rt, tilth_body body, struct job *job, int64_t n) {
  double best = 0;
  for (int k = 0; k < TRIES; k++) {
    double begin = tilth_now();
    rt->parallel(rt, body, job, n);
    double seconds = tilth_now() - begin;
    if (k == 0 || seconds < best) best = seconds;
  }
  return best;
}

/* The operations a second of a body whose steps are so many multiply-adds for each sum. */
static double arithmetic(const struct tilth_runtime *rt, struct job *job, tilth_body body, int terms) {
  double seconds = 0;
  for (job->rounds = 1 << 12; seconds < LEAST_SECONDS; job->rounds *= 2) seconds = least(rt, body, job, rt->workers);
  return 2.0 * (double)(job->rounds / 2) * SUMS * terms * rt->workers / seconds;
}

static double reading(const struct tilth_runtime *rt, struct job *job) {
  char *bytes = aligned_alloc(BLOCK, STREAM_BYTES);
  if (!bytes) return 0;
  memset(bytes, 1, STREAM_BYTES);
  job->bytes = bytes;
  double seconds = least(rt, stream, job, STREAM_BYTES / BLOCK);
  free(bytes);
  return STREAM_BYTES / seconds;
}

void tilth_measure_peak(const struct tilth_runtime *rt, double *flops, double *bytes) {
  struct job job = {.sinks = calloc(rt->workers, 64)};
  *flops = job.sinks ? arithmetic(rt, &job, multiply_add, LANES) : 0;
  *bytes = job.sinks ? reading(rt, &job) : 0;
  free(job.sinks);
}

double tilth_measure_integer_peak(const struct tilth_runtime *rt) {
  struct job job = {.sinks = calloc(rt->workers, 64)};
  double operations = job.sinks && TERMS > 0 ? arithmetic(rt, &job, multiply_add_integers, TERMS * INTEGER_LANES) : 0;
  free(job.sinks);
  return operations;
}
