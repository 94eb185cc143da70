/* Good and bad kernels for the workload of reference.c. -DKERNELS=K(name),... selects them. */
#define _GNU_SOURCE
#include "workload.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int packings;

static void pack(const struct tilth_runtime *rt, void *const *args, void *packed) {
  memcpy(packed, args[1], 4 * INNER);
  packings++;
}

static void pack_twice(const struct tilth_runtime *rt, void *const *args, void *packed) {
  memcpy(packed, args[1], 4 * INNER);
  memcpy((char *)packed + 4 * INNER, args[1], 4 * INNER);
}

KERNEL(slow) {
  for (int k = 0; k < 100; k++) good(rt, args, prepared, workspace);
}

/* What a simulated device would add to the time of this process. */
static double simulated;
double tilth_simulated(void) { return simulated; }

KERNEL(takes_back_a_quarter) {
  good(rt, args, prepared, workspace);
  simulated -= 0.25;
}

KERNEL(wrong) {
  good(rt, args, prepared, workspace);
  Y[7] += 1;
}

/* Wrong when the kernel before it, with the same packed constant, did not leave it. */
/* Is right on one processor. */
KERNEL(right_on_one) {
  cpu_set_t allowed;
  good(rt, args, prepared, workspace);
  if (sched_getaffinity(0, sizeof allowed, &allowed) || CPU_COUNT(&allowed) != 1) Y[7] = 0;
}

KERNEL(shares_packed) {
  good(rt, args, prepared, workspace);
  if (packings != 1) Y[0] = 1e9;
}

/* Its packed constant is larger than that of the others. */
KERNEL(packs_more) {
  struct closure c = {args[0], (float *)prepared[0] + INNER, args[2]};
  rt->parallel(rt, rows, &c, ROWS);
}

KERNEL(incomplete) {
  float before = Y[ROWS - 1];
  good(rt, args, prepared, workspace);
  Y[ROWS - 1] = before;
}

KERNEL(accumulates) {
  static int runs;
  good(rt, args, prepared, workspace);
  if (runs++) Y[0] += 1;
}

/* Two that go wrong in the middle of a race. */
KERNEL(endless_later) {
  static int runs;
  good(rt, args, prepared, workspace);
  for (volatile int stuck = ++runs > 5; stuck;) {}
}

KERNEL(null_pointer_later) {
  static int runs;
  good(rt, args, prepared, workspace);
  if (++runs > 5) *(volatile int *)8 = 0;
}

KERNEL(past_end) {
  good(rt, args, prepared, workspace);
  Y[ROWS] = 1;
}

KERNEL(before_begin) {
  good(rt, args, prepared, workspace);
  Y[-1] = 1;
}

KERNEL(far_past_end) { Y[ROWS + 100] = 1; }

KERNEL(past_workspace) {
  good(rt, args, prepared, workspace);
  ((volatile float *)workspace)[(128 + 64 * rt->workers) / 4] = 1;
}

KERNEL(writes_input) { ((volatile float *)args[0])[3] = 0; }

static void crash(void *closure, int64_t begin, int64_t end, int32_t worker) {
  if (begin) *(volatile int *)8 = 0;
}

KERNEL(null_pointer) { *(volatile int *)8 = 0; }

KERNEL(worker_crashes) { rt->parallel(rt, crash, NULL, 2); }

KERNEL(divides_by_zero) { abort(); }

KERNEL(exits) { exit(3); }

KERNEL(exits_well) { _exit(0); }

KERNEL(endless) {
  for (;;) pause(); /* endless_later computes for ever */
}

KERNEL(hoards_memory) {
  static char *volatile hoard;
  while ((hoard = malloc(64 << 20))) memset(hoard, 1, 64 << 20);
  abort();
}

KERNEL(floods) {
  for (int k = 0; k < 100000; k++) puts("a line of output that nobody asked for");
  good(rt, args, prepared, workspace);
}

KERNEL(garbles_report) {
  char junk[100] = {0};
  for (int fd = 0; fd < 256; fd++) write(fd, junk, sizeof junk);
  good(rt, args, prepared, workspace);
}

KERNEL(escapes) {
  good(rt, args, prepared, workspace);
  if (socket(AF_INET, SOCK_STREAM, 0) >= 0) Y[0] = 1e9;
  if (system("true") == 0) Y[1] = 1e9;
  if (fork() >= 0) Y[1] = 1e9;
  if (mkdirat(AT_FDCWD, "escaped", 0700) == 0) Y[2] = 1e9;
}

KERNEL(writes_file) {
  good(rt, args, prepared, workspace);
  int fd = open("written.txt", O_WRONLY | O_CREAT, 0600);
  if (fd >= 0 && write(fd, "x", 1) == 1) Y[3] = 1e9;
}

static const struct tilth_pack packed = {4 * INNER, pack};
static const struct tilth_pack *const packs[] = {&packed};
#define K(name) {#name, 1, packs, name, 128, 64}
static const struct tilth_pack twice = {2 * 4 * INNER, pack_twice};
static const struct tilth_pack *const more_packs[] = {&twice};
#define MORE {"packs_more", 1, more_packs, packs_more, 128, 64}
/* Asks for more scratch memory than any machine has. */
#define GREEDY {"greedy", 1, packs, good, (int64_t)1 << 50, 64}
static const struct tilth_kernel kernels[] = {KERNELS};
const struct tilth_module tilth_module = {TILTH_ABI, 3, args, sizeof kernels / sizeof *kernels, kernels};
