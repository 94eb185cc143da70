/* Where candidates run when that is not this process's own processor: a device with memory of its own, and candidates that are data to
 * this process. The buffers of the bench mirror the device's: what the judge gives goes there, and what it looks at comes back. The
 * reference always runs here. */
#ifndef TILTH_DEVICE_H
#define TILTH_DEVICE_H
#include "bench.h"

/* Reads a file of candidates. NULL after an error, with a message. */
const struct tilth_module *device_module(const char *path);

/* Whether candidates run elsewhere. The functions below are called only then. */
int device_is_open(void);

/* Gets a device ready before there is a workload, which takes most of the time that opening it takes, unless it is. 0 on success; otherwise a
 * message was reported. It need not be called. */
int device_ready(const struct options *o);

/* Opens the device, if there is one, and gives it the constants and the inputs. 0 on success; otherwise a message was reported. */
int device_open(const struct bench *b);

/* A part of an argument goes to the device, or comes from it. */
void device_give(const struct bench *b, int32_t arg, int64_t at, int64_t bytes);
void device_take(const struct bench *b, int32_t arg, int64_t at, int64_t bytes);

/* Makes a kernel ready to run. 0 on success; otherwise a message was reported. */
int device_load(const struct bench *b, const struct loaded *l);

/* Runs it once and returns the seconds it took. */
double device_run(const struct bench *b, const struct loaded *l);

/* Puts what the kernel reads out of the device's caches. */
void device_flush(const struct bench *b, const struct loaded *l);

/* Whether the kernel wrote past the end of what it was given; then there is a message. */
int device_overrun(const struct bench *b, const struct loaded *l, char *message, int message_bytes);

/* Seconds of a kernel that is always the same work. */
double device_calibrate(void);

/* Gives back what the workload and its candidates took, and leaves none of their data behind. The device stays ready for the next one. Called
 * only in processes that serve several. */
void device_close(const struct bench *b);

#endif
