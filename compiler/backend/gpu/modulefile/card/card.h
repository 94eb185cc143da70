/* The interface of user kernels for a card. They run on the host, enqueue work in a stream of the card, and return
 * without waiting. Arguments, in the order of the workload's text, and the workspace are pointers to the card's memory,
 * aligned to 64 and 256 bytes. */
#ifndef TILTH_CARD_H
#define TILTH_CARD_H
#include <stdint.h>

struct tilth_card {
  void *stream;       /* a CUstream, or a cudaStream_t; the card's context is current on the calling thread */
  int32_t number;     /* of the card, from 0, less than 16 */
  int32_t generation; /* of the context, never 0; when it changes, discard everything kept for the card */
};

/* Returns 0 or an error number. Calls are never concurrent. A call that is captured into a graph follows one that is not. */
typedef int (*tilth_card_kernel)(const struct tilth_card *card, void *const *args, void *workspace);

#endif
