/* Runs a single kernel, timed by the judge's clock, on inputs that this process has not seen before. */
#ifndef TILTH_EXAMINE_H
#define TILTH_EXAMINE_H
#include "bench.h"

/* Runs the kernel on each set of data that the judge asks for, until it asks for no more. Returns -1 after an error, with a message. */
int examine_reference(struct bench *b, const struct tilth_kernel *kernel);

/* Rehearses without a kernel as often as the judge wants, which shows what everything else takes. Returns 1 when the judge wants
 * the kernel, 0 when it has seen enough, and -1 after an error. */
int examine_rehearse(struct bench *b);

/* Verifies the kernel, and then runs it as the judge asks. */
int examine_candidate(struct bench *b, const struct tilth_kernel *kernel, int32_t index);

#endif
