/* A model that is open. Threads that share it wait for each other. */
#ifndef TILTH_HANDLE_H
#define TILTH_HANDLE_H
#include <pthread.h>

#include "engine.h"

#define TILTH_API __attribute__((visibility("default")))

struct tilth_model {
  struct tilth_engine *engine;
  pthread_mutex_t held; /* recursive: its holder may call what takes it again */
};

/* Checks the inputs that index axes. -1 if one is out of range, with the reason in tilth_last_error. */
TILTH_HIDDEN int tilth_check(struct tilth_model *model);

/* Reports what a run requires that was not so, unless it failed already. */
TILTH_HIDDEN void tilth_require(struct tilth_model *model);

#endif
