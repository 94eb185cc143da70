/* Calls functions of a package's object that was loaded at run time. */
#include <dlfcn.h>
#include <stdlib.h>

#include "tilth.h"

static void *object;

static void *symbol(const char *name) {
  void *found = dlsym(object, name);
  if (!found) exit(5);
  return found;
}
#define CALL(name) ((__typeof__(&name))symbol(#name))
