/* Keeps a candidate that goes astray from harming the machine it is measured on. */
#ifndef TILTH_SANDBOX_H
#define TILTH_SANDBOX_H
#include <stdint.h>

/* Ties the process to its parent's life and bounds its memory (0 = no bound) and core files. Call before anything is
 * allocated. */
void sandbox_limits(int64_t memory_bytes);

/* Gives up whatever running kernels needs not: new threads and processes, sockets, signals to others, writing files. What the
 * kernel of the machine does not support is left out; the runner's own limits remain. */
void sandbox_close(void);

#endif
