/* Kernels in shared objects. */
#ifndef TILTH_MODULE_H
#define TILTH_MODULE_H
#include "tilth_kernel.h"

/* Loads an object, which may run code of it. *object, unless it is NULL, becomes what unloads it. NULL after an error, with a message. */
const struct tilth_module *module_load(const char *path, void **object);

/* What a simulated device adds to the time of this process: the simulated seconds so far, less those that simulating took. The harness
 * itself contains the simulator, so that kernels cannot set their time. */
double module_simulated(void);

/* Unloads an object. */
void module_unload(void *object);

#endif
