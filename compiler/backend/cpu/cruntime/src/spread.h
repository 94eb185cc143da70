/* Threads that work at the same time should be on different processors. The kernel wakes a thread where it last ran even when
 * its waker runs there, and two that wait for each other by turns never look like a load to balance: a pool can stay on one
 * processor for good, many times slower than on two. */
#ifndef TILTH_SPREAD_H
#define TILTH_SPREAD_H
#include <sched.h> /* with _GNU_SOURCE */
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

/* Where a thread of a pool is. All zeros before it has sat down. */
struct tilth_seat {
  _Alignas(64) pid_t thread;
  _Atomic int32_t processor; /* of its last region, counted from 1 */
  int moved;
  cpu_set_t home; /* where it was allowed to run before it was moved */
};

/* Notes where the calling thread runs. */
void tilth_sit_down(struct tilth_seat *seat);

/* Keeps threads off the caller's processor, and off each other's, for as long as they are away from home: until
 * tilth_return_home. Threads that are apart already are left alone. Where there are fewer processors than threads they share. */
void tilth_spread(struct tilth_seat *seats, int32_t n);

/* Lets the threads that were moved run wherever they might before; they stay where they are until the kernel has a reason. */
void tilth_return_home(struct tilth_seat *seats, int32_t n);

#endif
