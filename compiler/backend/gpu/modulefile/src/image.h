/* Files of candidates: a table in text, and behind it the code for the device, which only the driver reads.
 *
 *     tilth-device-module 4
 *     args 2
 *     arg NAME ELEMENTS BYTES DTYPE ROLE TOLERANCE ROUNDING
 *     kernels 1
 *     kernel ID WORKSPACE_BYTES ERROR_GROWTH LAUNCHES
 *     launch ENTRY BLOCKS THREADS SHARED_BYTES PARAMETERS PARAMETER...
 *     code BYTES ASSEMBLED_BYTES
 *
 * Behind that line are so many bytes of text for the driver (PTX or OpenCL C), and of what an assembler made of it, if one did. A parameter is a
 * and the number of an argument, or w and an offset into the workspace, in bytes; or the tensor map of what lies there:
 *
 *     m DTYPE PANEL DIMENSIONS EXTENT STRIDE BOX EXTENT STRIDE BOX... a0
 *
 * with an extent in elements, a stride in bytes and the length of a box for each dimension, from the innermost one. */
#ifndef TILTH_IMAGE_H
#define TILTH_IMAGE_H
#include "tensormap.h"
#include "tilth_kernel.h"

enum { IMAGE_LAUNCHES = 256, IMAGE_PARAMETERS = 256, IMAGE_KERNELS = 4096, IMAGE_NAME = 128, IMAGE_FILES = 4096 };

/* A pointer that a launch gives its kernel: argument `arg`, or, where that is -1, a place in the workspace. Where there
 * are boxes it is not the pointer that the kernel gets, but a tensor map of them. */
struct image_parameter {
  int32_t arg;
  int64_t offset;
  struct tilth_boxes *boxes; /* NULL for a pointer */
  void *map;                 /* the driver's, allocated */
};

struct image_launch {
  char entry[IMAGE_NAME];
  int64_t blocks, threads, shared_bytes;
  int32_t n_parameters;
  struct image_parameter *parameters;
  void *function; /* the driver's */
};

struct image_kernel {
  struct tilth_kernel kernel;
  int32_t n_launches;
  struct image_launch *launches;
};

struct image {
  struct tilth_module module;
  struct image_kernel *kernels; /* in the order of the module's */
  void *loaded;                 /* the driver's */
  char *code;                   /* ends with a zero */
  void *assembled;              /* NULL where there is none */
  int64_t code_bytes, assembled_bytes;
};

/* Reads a file. On failure it returns NULL, with a message. */
struct image *image_read(const char *path, char *message, int message_bytes);

/* Keeps what was read. -1 when there is too much. */
int image_keep(struct image *i);

/* Removes and returns a kept image, or NULL. The caller closes it. */
struct image *image_take(void);

/* Gives its memory back, but for what is the driver's. */
void image_close(struct image *i);

/* The launches of a kernel by the description that its module has of it, among the images that are kept. */
const struct image_kernel *image_kernel_of(const struct tilth_kernel *kernel);

#endif
