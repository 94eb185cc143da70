/* Kernels in shared objects. */
#ifndef TILTH_MODULE_H
#define TILTH_MODULE_H
#include "tilth_kernel.h"

/* Loads an object, which may run code of it. *object, unless it is NULL, becomes what unloads it. NULL after an error, with a message. */
const struct tilth_module *module_load(const char *path, void **object);

/* What objects whose kernels run on a simulated device add to the time of this process. Such an object exports
 * double tilth_simulated(void): the simulated seconds so far, less those that simulating took. */
double module_simulated(void);

/* Unloads an object. */
void module_unload(void *object);

#endif
