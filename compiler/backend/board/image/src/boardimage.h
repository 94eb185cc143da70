/* The entry table of a module for a board, an ELF file that a host loads and runs remotely. The words are addresses. */
#ifndef TILTH_BOARDIMAGE_H
#define TILTH_BOARDIMAGE_H
#include <stdint.h>

struct boardimage_table {
  uint32_t module; /* struct tilth_module */
  uint32_t run;    /* (function of a kernel, args, prepared, workspace) */
  uint32_t pack;   /* (function of a pack, args, packed) */
  uint32_t fill;   /* (struct boardimage_fill *) */
};

/* Elements that are filled as the host fills them. */
struct boardimage_fill {
  uint32_t data, elements;
  int32_t dtype;
  uint32_t seed_low, seed_high;
};

#endif
