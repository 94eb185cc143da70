/* The inner wall around candidates. The outer one was there before the harness began: see docs/sandbox.md. */
#ifndef TILTH_SANDBOX_H
#define TILTH_SANDBOX_H
#include <stdint.h>

/* Gives up whatever running kernels needs not: new threads and processes, sockets, signals to others, writing files, other priorities. What
 * the kernel of the machine does not support is left out; the runner's own limits remain. With a device, whose driver does most of that
 * until the end, only what starts programs and reaches others is given up: there, candidates are data. */
void sandbox_close(int has_device);

#endif
