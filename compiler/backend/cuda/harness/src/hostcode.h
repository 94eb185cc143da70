/* Candidates with user kernels, which are host code. */
#ifndef TILTH_HOSTCODE_H
#define TILTH_HOSTCODE_H
#include "card.h"
#include "tilth_kernel.h"

/* Whether a file of candidates has such code. */
int hostcode_is(const char *path);

/* Loads such a file, which may run code of it. NULL after an error, with a message. */
const struct tilth_module *hostcode_load(const char *path);

/* The kernel of a description that such a file has; NULL for those of others. */
tilth_card_kernel hostcode_kernel_of(const struct tilth_kernel *kernel);

#endif
