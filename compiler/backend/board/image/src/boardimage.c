/* What every module for a board has beside its kernels. */
#include "boardimage.h"
#include "element.h"
#include "tilth_kernel.h"

static void alone(const struct tilth_runtime *rt, tilth_body body, void *closure, int64_t n) {
  (void)rt;
  if (n > 0) body(closure, 0, n, 0);
}

static const struct tilth_runtime runtime = {1, alone};

static void run(void (*kernel)(const struct tilth_runtime *, void *const *, void *const *, void *), void *const *args, void *const *prepared,
                void *workspace) {
  kernel(&runtime, args, prepared, workspace);
}

static void pack(void (*fill)(const struct tilth_runtime *, void *const *, void *), void *const *args, void *packed) { fill(&runtime, args, packed); }

static void fill(const struct boardimage_fill *f) {
  element_fill((void *)(uintptr_t)f->data, f->elements, f->dtype, (uint64_t)f->seed_high << 32 | f->seed_low);
}

struct addresses {
  const void *module, *run, *pack, *fill;
};

const struct addresses tilth_board_table = {&tilth_module, (const void *)run, (const void *)pack, (const void *)fill};
