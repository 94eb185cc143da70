/* The processors that a model's threads may run on, if the caller restricts them. */
#ifndef TILTH_CPUS_H
#define TILTH_CPUS_H
#include <pthread.h> /* with _GNU_SOURCE */
#include <sched.h>
#include <stdint.h>

struct tilth_cpus {
  int32_t n; /* 0 = any */
  cpu_set_t set;
};

/* Reads a list. 0 on success, else -1, with tilth_fail. */
int tilth_cpus_read(struct tilth_cpus *cpus, const int32_t *list, int32_t n);

/* Lets a thread run there only, for good. 0 on success, else an error's number. */
int tilth_cpus_confine(const struct tilth_cpus *cpus, pthread_t thread);

/* Where a thread might run before it entered. */
struct tilth_visit {
  int moved;
  cpu_set_t before;
};

/* Lets the calling thread run there only, until it leaves. */
void tilth_cpus_enter(const struct tilth_cpus *cpus, struct tilth_visit *visit);
void tilth_cpus_leave(const struct tilth_visit *visit);

#endif
