/* The runtime of an accelerator with explicit memory. A kernel runs on the host and issues instructions to the queues of three units.
 * Each unit executes its queue in order and runs ahead of the others as far as tokens allow. Here, a simulator executes the queues. */
#ifndef VTA_H
#define VTA_H
#include <stdint.h>

#include "vta_machine.h"

enum vta_unit { VTA_LOAD, VTA_COMPUTE, VTA_STORE, VTA_UNITS };
enum vta_memory { VTA_INPUTS, VTA_WEIGHTS, VTA_SUMS, VTA_RESULTS, VTA_MEMORIES };

/* The scratchpad operands of an instruction, the first of which is written, and its immediate values. */
enum { VTA_OPERANDS = 4, VTA_IMMEDIATES = 4 };

/* An address in a scratchpad. */
struct vta_place {
  int32_t memory, byte;
};

/* A loop of a computation: iterations, and the distance in bytes that each operand advances. */
struct vta_loop {
  int32_t iterations, step[VTA_OPERANDS];
};

/* A dimension of a copy: iterations, the distances in bytes in the scratchpad and in memory, and the iterations, from first and before
 * end, that lie within the tensor. A load writes zeros for others, and a store leaves them out. */
struct vta_dim {
  int64_t iterations, place, memory, first, end;
};

/* An operand's elements: pieces of some bytes. Those after the first are as many bytes apart as the first immediate value says. */
struct vta_access {
  int32_t bytes, pieces;
};

/* What one step of a computation does. */
struct vta_operation {
  const char *name;
  void (*step)(void *const *operands, const double *immediates);
  int32_t operands;
  struct vta_access access[VTA_OPERANDS];
};

struct vta;

/* Begins a kernel in memory of VTA_WORKSPACE_BYTES, aligned to 64. */
struct vta *vta_open(void *workspace);

/* Executes what was issued, and adds the time until the last unit is ready to that of the kernels. */
void vta_close(struct vta *v);

/* The simulated seconds of all kernels of this thread. */
double vta_seconds(void);

/* The same, less those that simulating took, for the clocks of the harness, which contains the simulator, and of packages. */
double tilth_simulated(void);

/* Declares ring number `ring`: slots of some bytes in a scratchpad, from a byte on, with elements of some bytes. All of them are free. */
void vta_ring(struct vta *v, int ring, int memory, int64_t byte, int64_t slot_bytes, int slots, int element_bytes);

/* Tokens: a unit waits until the ring's next slot is free, which becomes the current one; marks the current slot as filled; waits for that;
 * and frees it. */
void vta_acquire(struct vta *v, int unit, int ring);
void vta_publish(struct vta *v, int unit, int ring);
void vta_await(struct vta *v, int unit, int ring);
void vta_release(struct vta *v, int unit, int ring);

/* The address of an element of the ring's current slot. */
struct vta_place vta_at(const struct vta *v, int ring, int64_t element);

/* Copies elements of some bytes from memory to a scratchpad, or back. */
void vta_load(struct vta *v, struct vta_place to, const void *from, int element_bytes, int n, const struct vta_dim *dims);
void vta_store(struct vta *v, struct vta_place from, void *to, int element_bytes, int n, const struct vta_dim *dims);

/* Computes the steps of an operation in a nest of loops, outermost first. */
void vta_compute(struct vta *v, const struct vta_operation *o, const struct vta_place *operands, const double *immediates, int n,
                 const struct vta_loop *loops);

#endif
