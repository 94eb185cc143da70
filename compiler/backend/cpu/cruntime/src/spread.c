#define _GNU_SOURCE
#include "spread.h"

#include <unistd.h>

void tilth_sit_down(struct tilth_seat *seat) {
  if (!seat->thread) seat->thread = gettid();
  atomic_store_explicit(&seat->processor, sched_getcpu() + 1, memory_order_release);
}

/* Restricts a thread to processors that are not taken. */
static void move(struct tilth_seat *seat, const cpu_set_t *taken) {
  cpu_set_t allowed;
  if (sched_getaffinity(seat->thread, sizeof seat->home, &seat->home)) return;
  CPU_AND(&allowed, &seat->home, taken);
  CPU_XOR(&allowed, &seat->home, &allowed);
  if (CPU_COUNT(&allowed) == 0) return;
  seat->moved = sched_setaffinity(seat->thread, sizeof allowed, &allowed) == 0;
}

void tilth_spread(struct tilth_seat *seats, int32_t n) {
  cpu_set_t taken;
  int here = sched_getcpu(), together = 0;
  if (here < 0 || here >= CPU_SETSIZE) return;
  CPU_ZERO(&taken);
  CPU_SET(here, &taken);
  for (int32_t k = 0; k < n; k++) {
    int32_t p = atomic_load_explicit(&seats[k].processor, memory_order_acquire) - 1;
    if (p < 0 || p >= CPU_SETSIZE) continue;
    if (CPU_ISSET(p, &taken)) {
      together++;
      seats[k].moved = 1;
    }
    CPU_SET(p, &taken);
  }
  for (int32_t k = 0; k < n && together; k++)
    if (seats[k].moved) seats[k].moved = 0, move(&seats[k], &taken);
}

void tilth_return_home(struct tilth_seat *seats, int32_t n) {
  for (int32_t k = 0; k < n; k++) {
    if (!seats[k].moved) continue;
    seats[k].moved = 0;
    sched_setaffinity(seats[k].thread, sizeof seats[k].home, &seats[k].home);
  }
}
