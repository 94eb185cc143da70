/* Checks that a process asks for tiles, and that each thread of a pool has them whole. Exit status 1 names what is wrong. The model of the
 * instructions stands in for a processor that has them. */
#define _GNU_SOURCE
#define __AMX_TILE__ 1
#include "tiles_model.h"
#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

static int refused;
static long asked[3];
static _Thread_local struct model_config current;
static _Thread_local int loaded;

static long kernel(long call, long request, long feature) {
  asked[0] = call, asked[1] = request, asked[2] = feature;
  if (!refused) return 0;
  errno = EOPNOTSUPP;
  return -1;
}

#define syscall(call, request, feature) kernel(call, request, feature)
#define TILTH_LOAD_TILE_CONFIG(config) (model_configure(config), memcpy(&current, config, sizeof current), loaded++)
#define TILTH_RELEASE_TILES() (loaded = 0)
#include "tiles.c"
#undef syscall
#include "pool.h"

static void check(int ok, const char *what) {
  if (ok) return;
  printf("%s\n", what);
  exit(1);
}

static void look(void *closure, int64_t begin, int64_t end, int32_t worker) {
  int *whole = closure;
  whole[worker] = loaded == 1;
  for (int k = 0; k < MODEL_TILES; k++) whole[worker] &= current.rows[k] == MODEL_ROWS && current.row_bytes[k] == MODEL_ROW_BYTES;
}

int main(void) {
  refused = 1;
  check(tilth_tiles_permit() == -1 && errno == EOPNOTSUPP, "a refusal is not reported");
  check(asked[0] == SYS_arch_prctl && asked[1] == 0x1023 && asked[2] == 18, "something else is asked for");
  tilth_tiles_configure();
  check(!loaded, "tiles are configured that are not allowed");
  refused = 0;
  check(tilth_tiles_permit() == 0, "a permission is not reported");
  tilth_tiles_configure();
  struct tilth_pool *pool = tilth_pool_create(3);
  int whole[3] = {0};
  for (int round = 0; round < 3; round++) tilth_pool_runtime(pool)->parallel(tilth_pool_runtime(pool), look, whole, 3);
  for (int w = 0; w < 3; w++) check(whole[w], "a worker's tiles are not whole, or not configured once");
  tilth_pool_destroy(pool);
  tilth_tiles_release();
  check(!loaded, "the caller's tiles are not left");
  return 0;
}
