/* The harness's command line: harness [--name value]... REFERENCE.so CANDIDATES.so */
#ifndef TILTH_OPTIONS_H
#define TILTH_OPTIONS_H
#include <stdint.h>

struct options {
  const char *reference, *candidates; /* shared objects */
  int32_t threads;
  uint64_t seed;                /* of the data */
  int32_t first;                /* kernels before it are skipped */
  const char *reference_cache;  /* file with the reference's results, made when it is missing; NULL = none */
  int64_t memory_bytes;         /* address space; 0 = no bound */
  double incumbent_seconds;     /* best latency so far; 0 = none */
  double sample_seconds;        /* a timed sample repeats the kernel for at least so long */
  double budget_seconds;        /* time for the samples of one kernel */
  int32_t samples;              /* at most so many */
};

/* 0 on success; otherwise *wrong is the argument that does not fit. */
int options_parse(struct options *o, int argc, char **argv, const char **wrong);

#endif
