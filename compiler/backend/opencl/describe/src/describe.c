/* Describes an OpenCL device: a line for each text and number. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl.h"

/* A text in a line. */
static void print_line(const char *text) {
  for (; *text; text++) putchar((unsigned char)*text < ' ' ? ' ' : *text);
  putchar('\n');
}

int main(int argc, char **argv) {
  static const uint32_t texts[] = {CL_NAME, CL_DRIVER_VERSION, CL_VERSION, CL_EXTENSIONS};
  static const uint32_t numbers[] = {CL_TYPE, CL_COMPUTE_UNITS, CL_WORK_GROUP_SIZE, CL_LOCAL_BYTES, CL_CACHE_BYTES};
  static struct opencl api;
  struct opencl_device d;
  static char text[64 << 10];
  if (argc != 3) return 2;
  if (opencl_load(&api, argv[1], text, sizeof text) || opencl_find(&api, atoi(argv[2]), &d, text, sizeof text)) return fprintf(stderr, "%s\n", text), 1;
  if (api.clGetPlatformInfo(d.platform, CL_PLATFORM_NAME, sizeof text - 1, text, NULL) != CL_SUCCESS) return 1;
  print_line(text);
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
    memset(text, 0, sizeof text);
    if (api.clGetDeviceInfo(d.device, texts[k], sizeof text - 1, text, NULL) != CL_SUCCESS) return 1;
    print_line(text);
  }
  for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) printf("%llu\n", (unsigned long long)opencl_number(&d, numbers[k]));
  return 0;
}
