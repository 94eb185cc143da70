/* Modules for a board, which are data to this process: ELF files of 32 bits that may lie anywhere. See boardimage.h. */
#ifndef TILTH_BOARDMODULE_H
#define TILTH_BOARDMODULE_H
#include "boardimage.h"
#include "tilth_kernel.h"

enum { BOARDMODULE_KERNELS = 4096, BOARDMODULE_PACKS = 256, BOARDMODULE_ARGS = 256 };

struct boardmodule_pack {
  int64_t bytes;
  uint32_t fill; /* an address within the module */
};

struct boardmodule_kernel {
  uint32_t run;
  int32_t n_packs;
  struct boardmodule_pack *packs;
};

struct boardmodule {
  struct tilth_module module;         /* as the host has it; its functions cannot be called */
  struct boardmodule_kernel *kernels; /* in the order of the module's */
  struct boardimage_table table;      /* addresses within the module */
  unsigned char *bytes;               /* as if it lay at 0 */
  uint32_t size;
  uint32_t *words; /* the offsets of words that an address is added to */
  uint32_t n_words;
};

/* Reads a file. NULL on failure, with a message. */
struct boardmodule *boardmodule_read(const char *path, char *message, int message_bytes);

/* Gives back what reading took; m may be NULL. */
void boardmodule_free(struct boardmodule *m);

/* A copy of the module's bytes as they are at an address, allocated; NULL without memory. */
unsigned char *boardmodule_at(const struct boardmodule *m, uint32_t address);

#endif
