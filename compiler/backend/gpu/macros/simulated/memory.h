/* The simulation of a GPU on a processor. Here: arrays, and what each of their elements was last used for. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIM_STATIC static __attribute__((unused))
#define SIM_INLINE static inline __attribute__((unused, always_inline))
/* What kernels call everywhere: inlined, it would take long to compile. */
#define SIM_CALLED static __attribute__((unused, noinline))
#define SIM_RARE static __attribute__((unused, cold, noinline, noreturn))

enum { SIM_WARP = 32, SIM_MOST_THREADS = 1024, SIM_MOST_ARRAYS = 64, SIM_SHARED_BYTES = 256 << 10 };

/* An element of shared memory. Times are those of the block's clock, 0 is never. */
struct sim_cell {
  uint32_t wrote, read;
  uint16_t writer, reader;
  /* Another thread, plus 1, that has read the element since the last barrier with nothing between it and the reader:
   * if possible one of another warp. */
  uint16_t other;
  /* The thread, plus 1, whose asynchronous copy to the element is under way. */
  uint16_t copier;
  uint16_t write_line, read_line, other_line;
  /* How many products that are under way read the element. */
  uint16_t products;
  /* How often its writer had used FENCE_ASYNC before. */
  uint32_t fences;
};

enum { SIM_MOST_MBARRIERS = 64, SIM_MOST_BULK = 256 };

/* What needs no fence, since no thread wrote it but a bulk copy for the first mbarrier; those of others count down. */
#define SIM_UNFENCED UINT32_MAX

SIM_INLINE int sim_is_bulk(const struct sim_cell *c) { return c->fences > SIM_UNFENCED - SIM_MOST_MBARRIERS; }

/* An element of global memory that a launch writes. Blocks use it from several workers. Accesses are those of
 * sim_global_access, 0 is none; other is a read with nothing between it and the last one, if possible of another
 * block. */
struct sim_global_cell {
  uint64_t write, read, other;
  uint16_t write_line, read_line, other_line;
};

/* An array as a kernel knows it. */
struct sim_array {
  const char *name;
  char *memory;
  int32_t elements, element_bytes;
  /* At most one of them is set; neither is for global memory that the launch only reads. */
  struct sim_cell *cells;
  struct sim_global_cell *global_cells;
  /* The matrices of a SWIZZLED_ARRAY; 0 for others. */
  int32_t row, rows;
};

/* Where an element lies in the memory of its array. Cells are those of places. */
SIM_INLINE int64_t sim_place_of(const struct sim_array *a, int64_t i) {
  return a->row ? tilth_place((int)i, a->element_bytes, a->row, a->rows) : i;
}

/* The element that lies at a place. */
SIM_STATIC int64_t sim_element_at(const struct sim_array *a, int64_t place) {
  int64_t i = a->row ? 0 : place;
  while (i < a->elements && sim_place_of(a, i) != place) i++;
  return i;
}

/* An array in global memory that a launch writes. */
struct sim_output {
  const void *memory;
  int64_t elements;
};

/* Fresh memory, all zero. It takes room when it is used. */
SIM_STATIC void *sim_map(size_t bytes) {
  void *p = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    fprintf(stderr, "gpu-sim: there is no memory for a launch: %zu bytes\n", bytes);
    abort();
  }
  return p;
}
