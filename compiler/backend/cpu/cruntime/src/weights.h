/* The weights of a model, where they lie in a file. */
#ifndef TILTH_WEIGHTS_H
#define TILTH_WEIGHTS_H
#include <stddef.h>

#include "model.h"

struct tilth_weights {
  char *data;
  void *mapped; /* the file's pages around the weights */
  size_t mapped_bytes;
};

/* Maps the weights, which lie in the file from byte `offset` on. 0 on success, else -1, with tilth_fail. */
TILTH_HIDDEN int tilth_weights_map(struct tilth_weights *w, const char *path, int64_t offset);

TILTH_HIDDEN void tilth_weights_unmap(struct tilth_weights *w);

#endif
