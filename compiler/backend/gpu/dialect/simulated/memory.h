/* The simulation of a GPU: what each element of memory was last used for. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SIM_STATIC static __attribute__((unused))
#define SIM_INLINE static inline __attribute__((unused, always_inline))
#define SIM_RARE static __attribute__((unused, cold, noinline))

/* An access: by which thread of the block, at which line of the text, and when by the block's clock. 0 = never. */
struct sim_access {
  uint32_t time;
  int16_t thread;
  uint16_t line;
};

/* No thread in particular: several have read the element at the same time. */
#define SIM_SEVERAL (-1)

/* An element of shared memory. */
struct sim_cell {
  struct sim_access write, read;
};

/* An element of global memory that a launch writes: blocks may use it from several workers. An access is the thread
 * among those of the grid, plus 1, and the time. */
struct sim_global_cell {
  _Atomic uint64_t write, read;
};

/* An array in global memory that a launch writes. */
struct sim_output {
  const void *memory;
  int64_t elements;
};

SIM_STATIC void *sim_map(size_t bytes) {
  void *p = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    fprintf(stderr, "gpu-sim: no memory for a block: %zu bytes\n", bytes);
    abort();
  }
  return p;
}
