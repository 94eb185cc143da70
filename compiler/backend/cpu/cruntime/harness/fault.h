/* Says which buffer a kernel overran before the process dies. */
#ifndef TILTH_FAULT_H
#define TILTH_FAULT_H
#include "bench.h"

/* Catches faults from now on; a fault is reported as one of the kernel last named by fault_watch, then the process exits. */
void fault_catch(const struct bench *b);

/* Sets the kernel that runs next, with its buffers; NULL if it has not allocated any. */
void fault_watch(int32_t index, const struct loaded *l);

/* Reports a fault of the kernel last named, and ends the process. */
void fault_report(const char *text) __attribute__((noreturn));

/* The same of a kernel that ran longer than it may. */
void fault_report_timeout(const char *text) __attribute__((noreturn));

#endif
