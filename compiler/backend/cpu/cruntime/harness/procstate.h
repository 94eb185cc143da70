/* The state of the process that its candidates share. One that changes it would slow down or spoil those after it. The sandbox refuses most
 * calls that do so; the rest is compared after each turn. */
#ifndef TILTH_PROCSTATE_H
#define TILTH_PROCSTATE_H
#include "bench.h"

/* Remembers the state of the process and of all workers, before an object of candidates is loaded. */
void procstate_remember(const struct bench *b);

/* Restores what objects changed while they were loaded: libraries set floating-point modes, for example. What cannot be restored, such as
 * descriptors that they keep, is remembered as it is. */
void procstate_restore(void);

/* Ends a candidate's turn. If it has changed the process, reports that as its fault and ends the process. */
void procstate_end(void);

#endif
