/* Putting memory out of the caches. In a model the constants of a kernel were last read one execution ago and have been
 * displaced by all the others since; a kernel timed with warm constants looks faster than it will be, and the more so the more
 * constants it has. Inputs stay warm: the kernel before has just written them. */
#ifndef TILTH_FLUSH_H
#define TILTH_FLUSH_H
#include <stdint.h>

/* What is flushed at a time; a smaller cache line is flushed with its neighbours. */
enum { FLUSH_LINE = 64 };

/* Writes nothing: the bytes stay what they are. Does nothing where the architecture keeps this from programs. */
void flush_caches(const void *data, int64_t bytes);

#endif
