/* Tells what a card is: its name in a line, and then numbers in the order of `asked`. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "driver.h"

static const int asked[] = {CU_COMPUTE_MAJOR, CU_COMPUTE_MINOR, CU_MULTIPROCESSORS, CU_WARP_THREADS, CU_BLOCK_THREADS, CU_MULTIPROCESSOR_THREADS,
                            CU_MULTIPROCESSOR_REGISTERS, CU_BLOCK_SHARED_BYTES, CU_MULTIPROCESSOR_SHARED_BYTES, CU_L2_BYTES};

static int fails(const struct driver *d, CUresult result) {
  if (result == CUDA_SUCCESS) return 0;
  fprintf(stderr, "%s\n", driver_error(d, result));
  return 1;
}

int main(int argc, char **argv) {
  struct driver d;
  CUdevice device;
  char text[256];
  if (argc != 3) return 2;
  if (driver_open(&d, argv[1], text, sizeof text)) return fprintf(stderr, "%s\n", text), 1;
  if (fails(&d, d.cuInit(0)) || fails(&d, d.cuDeviceGet(&device, atoi(argv[2]))) || fails(&d, d.cuDeviceGetName(text, sizeof text, device))) return 1;
  printf("%s\n", text);
  for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) {
    int value;
    if (fails(&d, d.cuDeviceGetAttribute(&value, asked[k], device))) return 1;
    printf("%d\n", value);
  }
  return 0;
}
