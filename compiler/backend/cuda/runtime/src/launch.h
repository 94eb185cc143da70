/* How kernels of a package are started on an NVIDIA GPU. */
#ifndef TILTH_LAUNCH_H
#define TILTH_LAUNCH_H
#include "card.h"
#include "driver.h"
#include "devicecode.h"
#include "tilth.h"
#include "tilth_kernel.h"

/* The cards that a process may use. */
enum { TILTH_MOST_CARDS = 16 };

/* The code of a translation unit. A card's module is loaded when the first model is opened there. */
struct tilth_device_code {
  const char *parts; /* aligned to 16 bytes */
  CUmodule modules[TILTH_MOST_CARDS];
};

/* A kernel in such code. */
struct tilth_device_kernel {
  struct tilth_device_code *code;
  const char *name;
  int64_t blocks;
  int32_t threads, shared_bytes;
  CUfunction functions[TILTH_MOST_CARDS];
  const struct tilth_boxes *boxes; /* of the last parameters, which are tensor maps */
  int32_t n_boxes;
  int32_t is_listed; /* among those that were loaded on some card */
  struct tilth_device_kernel *next; /* in that list */
};

/* The launches of a run that is profiled, with an event before and one behind each. */
struct tilth_device_profile {
  struct tilth_launch *launches;
  CUevent *begins, *ends;
  int32_t n, most;
  int32_t call; /* the one that runs */
};

/* What kernels get. The functions of a plan pass it on. */
struct tilth_device_runtime {
  struct tilth_runtime runtime; /* the first member: a pointer to it is one to all */
  const struct driver *driver;
  int card; /* its number */
  int32_t generation; /* of its context */
  CUstream stream;
  CUresult failed;  /* the first error, after which nothing is started */
  const char *step; /* at which it happened */
  int own_failed;    /* that error is a user kernel's, and not one of the driver's numbers */
  char refused[384]; /* what more is known of code that the driver refuses, or all of the other */
  int32_t launches; /* of a run so far */
  struct tilth_device_profile *profile; /* NULL but while a run is profiled */
};

/* Starts a kernel with pointers into the device's memory, of which the last ones are where its tensor maps lie. */
__attribute__((visibility("hidden"))) void tilth_device_launch(const struct tilth_runtime *rt, struct tilth_device_kernel *k, void *const *pointers, int n);

/* Lets a user kernel enqueue its work in the stream. */
__attribute__((visibility("hidden"))) void tilth_device_own(const struct tilth_runtime *rt, tilth_card_kernel kernel, const char *name, void *const *args, void *workspace);

/* Takes all kernels off a card, whose context is the one that the thread uses. */
__attribute__((visibility("hidden"))) void tilth_device_unload(const struct driver *d, int card);

#endif
