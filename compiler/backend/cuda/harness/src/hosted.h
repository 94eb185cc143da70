/* Candidates by kernels that somebody wrote, which are code for the host. */
#ifndef TILTH_HOSTED_H
#define TILTH_HOSTED_H
#include "card.h"
#include "tilth_kernel.h"

/* Whether a file of candidates has such code. */
int hosted_is(const char *path);

/* Loads such a file, which may run code of it. NULL after an error, with a message. */
const struct tilth_module *hosted_load(const char *path);

/* The kernel of a description that such a file has; NULL for those of others. */
tilth_card_kernel hosted_kernel_of(const struct tilth_kernel *kernel);

/* Whether there was such a file. */
int hosted_any(void);

#endif
