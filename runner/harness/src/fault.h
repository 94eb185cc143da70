/* Says which buffer a kernel overran before the process dies. */
#ifndef TILTH_FAULT_H
#define TILTH_FAULT_H
#include "bench.h"

/* Catches faults from now on; a fault is reported as one of kernel fault_index(), then the process exits. */
void fault_catch(const struct bench *b, const struct loaded *l);

/* The kernel that runs next. */
void fault_index(int32_t index);

#endif
