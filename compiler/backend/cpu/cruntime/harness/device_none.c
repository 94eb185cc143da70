/* Candidates that run in this process. */
#include "device.h"

#include <stddef.h>

#include "module.h"

const struct tilth_module *device_module(const char *path) { return module_load(path, NULL); }

int device_is_open(void) { return 0; }

int device_ready(const struct options *o) { return (void)o, 0; }

int device_open(const struct bench *b) { return (void)b, 0; }

void device_give(const struct bench *b, int32_t arg, int64_t at, int64_t bytes) { (void)b, (void)arg, (void)at, (void)bytes; }

void device_take(const struct bench *b, int32_t arg, int64_t at, int64_t bytes) { (void)b, (void)arg, (void)at, (void)bytes; }

int device_load(const struct bench *b, const struct loaded *l) { return (void)b, (void)l, 0; }

double device_run(const struct bench *b, const struct loaded *l) { return (void)b, (void)l, 0; }

void device_flush(const struct bench *b, const struct loaded *l) { (void)b, (void)l; }

int device_overrun(const struct bench *b, const struct loaded *l, char *message, int message_bytes) {
  return (void)b, (void)l, (void)message, (void)message_bytes, 0;
}

double device_calibrate(void) { return 0; }

void device_close(const struct bench *b) { (void)b; }
