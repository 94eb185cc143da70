/* Why a call failed. */
#ifndef TILTH_FAILURE_H
#define TILTH_FAILURE_H
#include "model.h"

/* Keeps a message for tilth_last_error, for this thread; NULL forgets the last one. Returns -1. */
TILTH_HIDDEN int tilth_fail(const char *format, ...);

#endif
