/* Kernels that somebody wrote for a card: they run on the host, put work into a stream of the card, and wait for nothing. Their arguments and
 * their workspace are pointers into the card's memory, in the order of the workload's text; arguments are aligned to 64 bytes, the workspace
 * to 256. */
#ifndef TILTH_CARD_H
#define TILTH_CARD_H
#include <stdint.h>

struct tilth_card {
  void *stream;       /* a CUstream, or a cudaStream_t; the card's context is current on the calling thread */
  int32_t number;     /* of the card, from 0, less than 16 */
  int32_t generation; /* of the context: what a kernel keeps for a card may be gone once this is another number; never 0 */
};

/* Returns 0, or a number that says what went wrong. No two calls are made at a time. Before a call that is recorded as part of a graph there
 * was one that is not. */
typedef int (*tilth_card_kernel)(const struct tilth_card *card, void *const *args, void *workspace);

#endif
