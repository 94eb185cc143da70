/* Prints what a device can do at most: operations a second, and bytes a second of copies of as many bytes as each argument says. */
#include <stdio.h>
#include <stdlib.h>

#include "rates.h"

int main(int argc, char **argv) {
  static struct opencl api;
  struct opencl_device d;
  char text[1024];
  if (argc < 3) return 2;
  if (opencl_load(&api, argv[1], text, sizeof text) || opencl_find(&api, atoi(argv[2]), &d, text, sizeof text) || opencl_open(&d, text, sizeof text))
    return fprintf(stderr, "%s\n", text), 1;
  printf("%.9g\n", opencl_flops(&d));
  for (int k = 3; k < argc; k++) printf("%.9g\n", opencl_copies(&d, atoll(argv[k])));
  return 0;
}
