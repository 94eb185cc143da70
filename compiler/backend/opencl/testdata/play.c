/* Runs kernels of modules, a file each, on the first OpenCL device: the cases that it reads from standard input, as the program of package
 * kerneltest does, whose numbers and messages it shares. A fence lies behind each buffer. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fence.h"
#include "image.h"
#include "opencl.h"

static struct opencl api;
static struct opencl_device device;
static char message[4096];

static void must(int ok, const char *what) {
  if (ok) return;
  fprintf(stderr, "ERROR: %s %s\n", what, message);
  exit(1);
}

static int64_t number(void) {
  int64_t v;
  must(fread(&v, sizeof v, 1, stdin) == 1, "the cases end too early");
  return v;
}

/* Memory of the device that is filled with NaN, and a fence. */
static cl_mem buffer(int64_t bytes) {
  int32_t error;
  unsigned char *all = malloc(bytes + FENCE);
  memset(all, 0xff, bytes), memset(all + bytes, FENCE_VALUE, FENCE);
  cl_mem m = api.clCreateBuffer(device.context, CL_READ_WRITE, bytes + FENCE, NULL, &error);
  must(error == CL_SUCCESS && !api.clEnqueueWriteBuffer(device.queue, m, 1, 0, bytes + FENCE, all, 0, NULL, NULL), "allocating");
  free(all);
  return m;
}

/* What is in memory of the device, for which the fence is looked at. */
static unsigned char *fetched(cl_mem m, int64_t bytes, const char *name) {
  unsigned char *all = malloc(bytes + FENCE);
  must(!api.clEnqueueReadBuffer(device.queue, m, 1, 0, bytes + FENCE, all, 0, NULL, NULL), "reading");
  must(!fence_spoilt(all + bytes, name, message, sizeof message), "the kernel");
  return all;
}

static void launch(cl_program program, const struct image_launch *l, const cl_mem *args, cl_mem workspace) {
  int32_t error;
  cl_kernel kernel = api.clCreateKernel(program, l->entry, &error);
  must(error == CL_SUCCESS, "finding a kernel");
  for (int32_t k = 0; k < l->n_parameters; k++) {
    const struct image_parameter *p = &l->parameters[k];
    must(!opencl_parameter(&api, kernel, k, p->arg >= 0 ? args[p->arg] : workspace, p->arg >= 0 ? 0 : p->offset), "giving an argument");
  }
  must(!opencl_launch(&device, kernel, l->blocks, l->threads, NULL) && !api.clFinish(device.queue), "running");
}

int main(int argc, char **argv) {
  must(!opencl_load(&api, argv[1], message, sizeof message) && !opencl_find(&api, 0, &device, message, sizeof message) &&
           !opencl_open(&device, message, sizeof message), "opening the device:");
  int64_t cases = number();
  for (int64_t c = 0; c < cases; c++) {
    fprintf(stderr, "case %d\n", (int)c);
    int64_t module = number(), n = (number(), number()), bytes[256], output[256];
    cl_mem args[256];
    must(module + 2 < argc && n <= 256, "the cases are others");
    for (int64_t i = 0; i < n; i++) {
      bytes[i] = number(), output[i] = number();
      args[i] = buffer(bytes[i]);
      void *data = malloc(bytes[i] + 1);
      if (!output[i] && bytes[i] && (fread(data, bytes[i], 1, stdin) != 1 || api.clEnqueueWriteBuffer(device.queue, args[i], 1, 0, bytes[i], data, 0, NULL, NULL)))
        must(0, "reading an argument");
      free(data);
    }
    struct image *image = image_read(argv[2 + module], message, sizeof message);
    must(image != NULL, "reading a module:");
    cl_program program = opencl_build(&device, image->code, message, sizeof message);
    must(program != NULL, "compiling:");
    int64_t workspace_bytes = image->kernels[0].kernel.workspace_bytes;
    cl_mem workspace = buffer(workspace_bytes);
    for (int32_t k = 0; k < image->kernels[0].n_launches; k++) launch(program, &image->kernels[0].launches[k], args, workspace);
    free(fetched(workspace, workspace_bytes, "workspace"));
    for (int64_t i = 0; i < n; i++) {
      unsigned char *all = fetched(args[i], bytes[i], "an argument");
      must(!output[i] || !bytes[i] || fwrite(all, bytes[i], 1, stdout) == 1, "writing");
      free(all);
      api.clReleaseMemObject(args[i]);
    }
    api.clReleaseMemObject(workspace);
  }
  return 0;
}
