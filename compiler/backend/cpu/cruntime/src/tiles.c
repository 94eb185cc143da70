#define _GNU_SOURCE
#include "tiles.h"

#ifdef __AMX_TILE__
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of <asm/prctl.h>, which is younger than some systems. */
#define REQUEST_PERMISSION 0x1023
#define TILE_DATA 18

/* Tests have other meanings for these. */
#ifndef TILTH_LOAD_TILE_CONFIG
#define TILTH_LOAD_TILE_CONFIG(config) __asm__ volatile("ldtilecfg %0" : : "m"(*(config)))
#define TILTH_RELEASE_TILES() __asm__ volatile("tilerelease")
#endif

/* What LDTILECFG reads; eight of the tiles exist. */
struct tile_config {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};

static const struct tile_config whole_tiles = {
    .palette = 1, .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

static _Atomic int tiles_are_permitted;

int tilth_tiles_permit(void) {
  if (syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA)) return -1;
  atomic_store(&tiles_are_permitted, 1);
  return 0;
}

void tilth_tiles_configure(void) {
  if (atomic_load(&tiles_are_permitted)) TILTH_LOAD_TILE_CONFIG(&whole_tiles);
}

void tilth_tiles_release(void) {
  if (atomic_load(&tiles_are_permitted)) TILTH_RELEASE_TILES();
}
#else
int tilth_tiles_permit(void) { return 0; }

void tilth_tiles_configure(void) {}

void tilth_tiles_release(void) {}
#endif
