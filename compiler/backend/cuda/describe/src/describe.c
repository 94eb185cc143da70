/* Describes the cards that the driver shows. For each, it writes a line with the UUID, one with the name, and numbers in the order of `asked`. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "driver.h"

static const int asked[] = {CU_COMPUTE_MAJOR, CU_COMPUTE_MINOR, CU_MULTIPROCESSORS, CU_WARP_THREADS, CU_BLOCK_THREADS, CU_MULTIPROCESSOR_THREADS,
                            CU_MULTIPROCESSOR_REGISTERS, CU_BLOCK_SHARED_BYTES, CU_MULTIPROCESSOR_SHARED_BYTES, CU_L2_BYTES};

static int fails(const struct driver *d, CUresult result) {
  if (result == CUDA_SUCCESS) return 0;
  fprintf(stderr, "%s\n", driver_error(d, result));
  return 1;
}

/* Writes the UUID in the form of CUDA_VISIBLE_DEVICES. Only MIG in its name distinguishes a slice from a card. */
static void write_id(const CUuuid *uuid, const char *name) {
  printf("%s", strstr(name, " MIG ") ? "MIG" : "GPU");
  for (int k = 0; k < 16; k++) printf("%s%02x", k == 0 || k == 4 || k == 6 || k == 8 || k == 10 ? "-" : "", uuid->bytes[k]);
  printf("\n");
}

static int describe(const struct driver *d, int ordinal) {
  CUdevice device;
  CUuuid uuid;
  char name[256];
  if (fails(d, d->cuDeviceGet(&device, ordinal)) || fails(d, d->cuDeviceGetName(name, sizeof name, device)) || fails(d, d->cuDeviceGetUuid_v2(&uuid, device)))
    return 1;
  write_id(&uuid, name);
  printf("%s\n", name);
  for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) {
    int value;
    if (fails(d, d->cuDeviceGetAttribute(&value, asked[k], device))) return 1;
    printf("%d\n", value);
  }
  return 0;
}

int main(int argc, char **argv) {
  struct driver d;
  char text[256];
  int n = 0;
  if (argc != 2) return 2;
  if (driver_open(&d, argv[1], text, sizeof text)) return fprintf(stderr, "%s\n", text), 1;
  if (fails(&d, d.cuInit(0)) || fails(&d, d.cuDeviceGetCount(&n))) return 1;
  for (int k = 0; k < n; k++)
    if (describe(&d, k)) return 1;
  return 0;
}
