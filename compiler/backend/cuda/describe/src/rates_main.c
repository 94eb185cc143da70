/* Prints what a card can do at most: operations a second, and bytes a second of copies of as many bytes as each argument says. */
#include <stdio.h>
#include <stdlib.h>

#include "rates.h"

int main(int argc, char **argv) {
  struct driver d;
  CUdevice device;
  CUcontext context;
  char text[256];
  if (argc < 2) return 2;
  if (driver_open(&d, argv[1], text, sizeof text)) return fprintf(stderr, "%s\n", text), 1;
  if (d.cuInit(0) || d.cuDeviceGet(&device, 0) || d.cuDevicePrimaryCtxRetain(&context, device) || d.cuCtxSetCurrent(context)) return 1;
  printf("%.9g\n", driver_flops(&d, NULL));
  for (int k = 2; k < argc; k++) printf("%.9g\n", driver_copies(&d, NULL, atoll(argv[k])));
  return 0;
}
