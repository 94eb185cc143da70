#include "rates.h"

#include <stdio.h>

enum { WORK_THREADS = 64, WORK_BLOCKS = 32, WORK_STEPS = 512, WORK_LANES = 32, RATE_RUNS = 3, RATE_COPIES = 8 }; /* blocks for each compute unit */

static const char work_text[] =
    "#pragma OPENCL FP_CONTRACT ON\n"
    "__kernel void tilth_calibration(__global float *sums) {\n"
    "  float16 f = (float)get_local_id(0), g = f + 1.0f;\n"
    "  for (int k = 0; k < 512; k++) f = f * 0.5f + 0.5f, g = g * 0.5f + 0.25f;\n"
    "  f += g;\n"
    "  sums[get_global_id(0)] = f.s0 + f.s1 + f.s2 + f.s3 + f.s4 + f.s5 + f.s6 + f.s7 + f.s8 + f.s9 + f.sa + f.sb + f.sc + f.sd + f.se + f.sf;\n"
    "}\n";

int opencl_work_open(const struct opencl_device *d, struct opencl_work *w, char *message, int message_bytes) {
  int32_t error;
  *w = (struct opencl_work){0};
  cl_program program = opencl_build(d, work_text, message, message_bytes);
  if (!program) return -1;
  w->blocks = WORK_BLOCKS * (int64_t)opencl_number(d, CL_COMPUTE_UNITS);
  w->kernel = d->api->clCreateKernel(program, "tilth_calibration", &error);
  if (error == CL_SUCCESS) w->sums = d->api->clCreateBuffer(d->context, CL_READ_WRITE, (size_t)w->blocks * WORK_THREADS * sizeof(float), NULL, &error);
  if (error == CL_SUCCESS) error = d->api->clSetKernelArg(w->kernel, 0, sizeof w->sums, &w->sums);
  d->api->clReleaseProgram(program); /* the kernel has it */
  if (error == CL_SUCCESS) return 0;
  snprintf(message, message_bytes, "making ready to calibrate: %s", opencl_error(error));
  opencl_work_close(d, w);
  return -1;
}

void opencl_work_close(const struct opencl_device *d, const struct opencl_work *w) {
  if (w->sums) d->api->clReleaseMemObject(w->sums);
  if (w->kernel) d->api->clReleaseKernel(w->kernel);
}

/* Seconds from the first event to the last, which are let go; less than 0 after an error. */
static double finished(const struct opencl_device *d, cl_event first, cl_event last) {
  double seconds = d->api->clWaitForEvents(1, &last) == CL_SUCCESS ? opencl_seconds(d->api, first, last) : -1;
  if (first != last) d->api->clReleaseEvent(first);
  d->api->clReleaseEvent(last);
  return seconds;
}

double opencl_work_do(const struct opencl_device *d, const struct opencl_work *w) {
  cl_event event;
  return opencl_launch(d, w->kernel, w->blocks, WORK_THREADS, &event) == CL_SUCCESS ? finished(d, event, event) : -1;
}

double opencl_flops(const struct opencl_device *d) {
  struct opencl_work w;
  char message[512];
  double least = 0;
  if (opencl_work_open(d, &w, message, sizeof message)) return 0;
  for (int run = 0; run <= RATE_RUNS; run++) { /* the first wakes the device */
    double seconds = opencl_work_do(d, &w);
    if (seconds > 0 && run > 0 && (least == 0 || seconds < least)) least = seconds;
  }
  opencl_work_close(d, &w);
  return least > 0 ? 2.0 * WORK_STEPS * WORK_LANES * WORK_THREADS * (double)w.blocks / least : 0;
}

static double copies(const struct opencl_device *d, cl_mem from, cl_mem to, int64_t bytes) {
  cl_event first = NULL, last = NULL;
  for (int k = 0; k < RATE_COPIES; k++) {
    cl_event event;
    if (d->api->clEnqueueCopyBuffer(d->queue, from, to, 0, 0, (size_t)bytes, 0, NULL, &event) != CL_SUCCESS) return -1;
    if (last && last != first) d->api->clReleaseEvent(last);
    last = event, first = first ? first : event;
  }
  return finished(d, first, last);
}

double opencl_copies(const struct opencl_device *d, int64_t bytes) {
  int32_t error;
  double least = 0;
  cl_mem from = d->api->clCreateBuffer(d->context, CL_READ_WRITE, (size_t)bytes, NULL, &error), to = NULL;
  if (error == CL_SUCCESS) to = d->api->clCreateBuffer(d->context, CL_READ_WRITE, (size_t)bytes, NULL, &error);
  for (int run = 0; run <= RATE_RUNS && error == CL_SUCCESS; run++) {
    double seconds = copies(d, from, to, bytes);
    if (seconds > 0 && run > 0 && (least == 0 || seconds < least)) least = seconds;
  }
  if (from) d->api->clReleaseMemObject(from);
  if (to) d->api->clReleaseMemObject(to);
  return least > 0 ? 2.0 * RATE_COPIES * (double)bytes / least : 0;
}
