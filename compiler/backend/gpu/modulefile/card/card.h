/* The interface of user kernels for a card. They run on the host, enqueue work in a stream of the card, and do not wait. Their arguments and
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

/* Returns 0 or an error number. Calls are not concurrent. A call that is recorded as part of a graph follows one that is not. */
typedef int (*tilth_card_kernel)(const struct tilth_card *card, void *const *args, void *workspace);

#endif
