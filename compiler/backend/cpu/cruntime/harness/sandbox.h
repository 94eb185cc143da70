/* The inner wall around candidates. The outer one was there before the harness began: see docs/sandbox.md. */
#ifndef TILTH_SANDBOX_H
#define TILTH_SANDBOX_H
#include <stdint.h>

/* What candidates share their process with: nothing, a device's driver, or one that compiles their code here. */
enum sandbox_with { SANDBOX_ALONE, SANDBOX_DRIVER, SANDBOX_COMPILING_DRIVER };

/* Gives up whatever running kernels needs not: new threads and processes, sockets, signals to others, writing files, and what would change the
 * process for candidates that follow, such as priorities, processors, signal handlers, timers and limits. What the kernel of the machine
 * does not support is left out; the runner's own limits remain. A device's driver does most of that until the end, so that only what starts
 * programs and reaches others is given up: there, candidates are data. A driver that compiles starts programs, too. */
void sandbox_close(enum sandbox_with with);

#endif
