#define _GNU_SOURCE
#include "cpus.h"

#include "failure.h"

int tilth_cpus_read(struct tilth_cpus *cpus, const int32_t *list, int32_t n) {
  cpu_set_t allowed;
  CPU_ZERO(&cpus->set);
  for (int32_t k = 0; k < n; k++) {
    if (list[k] < 0 || list[k] >= CPU_SETSIZE) return tilth_fail("processor %d: want numbers from 0 to %d", list[k], CPU_SETSIZE - 1);
    CPU_SET(list[k], &cpus->set);
  }
  cpus->n = CPU_COUNT(&cpus->set);
  if (n == 0 || sched_getaffinity(0, sizeof allowed, &allowed)) return 0;
  for (int32_t k = 0; k < n; k++)
    if (!CPU_ISSET(list[k], &allowed)) return tilth_fail("processor %d: this thread may not run there", list[k]);
  return 0;
}

int tilth_cpus_confine(const struct tilth_cpus *cpus, pthread_t thread) {
  return cpus->n > 0 ? pthread_setaffinity_np(thread, sizeof cpus->set, &cpus->set) : 0;
}

void tilth_cpus_enter(const struct tilth_cpus *cpus, struct tilth_visit *visit) {
  cpu_set_t there;
  visit->moved = 0;
  if (cpus->n == 0 || sched_getaffinity(0, sizeof visit->before, &visit->before)) return;
  CPU_AND(&there, &visit->before, &cpus->set);
  if (!CPU_EQUAL(&there, &visit->before)) visit->moved = sched_setaffinity(0, sizeof cpus->set, &cpus->set) == 0;
}

void tilth_cpus_leave(const struct tilth_visit *visit) {
  if (visit->moved) sched_setaffinity(0, sizeof visit->before, &visit->before);
}
