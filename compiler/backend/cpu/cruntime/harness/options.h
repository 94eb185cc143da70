/* The harness's command line: harness [--name value]... REFERENCE.so CANDIDATES.so...; with --compute 1 there are no candidates. With --serve 1
 * there are only options for reaching the device: the process prepares it and reads further command lines from the judge. */
#ifndef TILTH_OPTIONS_H
#define TILTH_OPTIONS_H
#include <stdint.h>

enum { MOST_CHOSEN = 1024 };

struct options {
  const char *reference; /* shared object */
  char **modules;        /* those of the candidates, whose kernels are numbered through */
  int32_t n_modules;
  const char *chosen[MOST_CHOSEN]; /* ids of the kernels to measure; none = all */
  int32_t n_chosen;
  int32_t threads;
  uint64_t seed;                /* of the constants' data */
  int32_t first;                /* kernels before it are skipped */
  int32_t alike;                /* whether kernels get as many samples as the budget allows, none in a race with another */
  int32_t finalists;            /* whether kernels take turns */
  uint64_t without;             /* of finalists: bit k is set where kernel k is left out */
  int32_t serve;                /* whether what is to be done is heard later, again and again */
  int32_t compute;              /* whether the reference is run, and nothing else */
  int32_t examine;              /* whether one kernel is run by itself as the judge asks */
  int32_t device;               /* which of the devices of a kind, from 0 */
  const char *visible;          /* which devices the driver is to show, in its own words; NULL = all */
  const char *driver;           /* library of the device's driver; NULL = the usual one */
  const char *scratch;          /* folder for a driver that compiles, which may run programs and write files; NULL = it may not */
  int32_t answers_fd;           /* descriptor of the memory that is shared with the judge */
  double incumbent_seconds;     /* upper end of the interval of the best latency so far; 0 = none */
  double incumbent_median;      /* of the best latency so far */
  double incumbent_spread;      /* standard deviation of a sample of the best, in seconds */
  double sample_seconds;        /* a timed sample repeats the kernel for at least so long */
  double budget_seconds;        /* time for the samples of one kernel */
  double calibration_seconds;   /* least time of a calibration known of this device; 0 = none */
  double patience_seconds;      /* time that may be spent on waiting for a calm device */
  double sustain_seconds;       /* a kernel runs back to back for so long, while a meter is read; 0 = not */
  int32_t samples;              /* at most so many */
  int32_t least_samples;        /* of a finalist, and of another candidate that is hardly slower than the best */
};

/* 0 on success; otherwise *wrong is the argument that does not fit. */
int options_parse(struct options *o, int argc, char **argv, const char **wrong);

#endif
