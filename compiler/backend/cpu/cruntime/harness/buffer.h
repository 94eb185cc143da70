/* Memory in which a kernel's stray accesses do not go unnoticed. */
#ifndef TILTH_BUFFER_H
#define TILTH_BUFFER_H
#include <stdint.h>

/* A buffer between two pages that may not be touched. It lies as near to the end as its alignment of 64 bytes allows;
 * the slack around it holds canaries. */
struct buffer {
  const char *name; /* for messages; the caller's */
  unsigned char *data;
  int64_t bytes;
  unsigned char *pages; /* accessible pages around data */
  int64_t pages_bytes;
  int64_t behind; /* bytes of the pages behind those that may not be touched */
};

/* Allocates a buffer of zeros, which cost nothing until they are touched, with at least `behind` bytes behind it that may not be. 0 on
 * success, else errno. */
int buffer_open(struct buffer *b, const char *name, int64_t bytes, int64_t behind);

/* Maps zeros after the end. In a model, other data follow, so that prefetches ahead of a kernel find memory. Without a mapping, the processor
 * would walk the page tables for each of them, which takes longer than a load and would be measured. */
void buffer_show_end(struct buffer *b);

/* Unmaps them. */
void buffer_hide_end(struct buffer *b);

/* What buffers hold before anything is written. */
enum { POISON = 0xFF };

/* Renews the canaries. */
void buffer_mark(struct buffer *b);

/* Fills the buffer so that whatever is not written shows (floats become NaN) and renews the canaries. */
void buffer_poison(struct buffer *b);

/* From now on writing faults. 0 on success, else errno. */
int buffer_protect(struct buffer *b);

/* Takes that back. 0 on success, else errno. */
int buffer_unprotect(struct buffer *b);

/* How many bytes past the end the canaries were written to; negative before the beginning; 0 when they are intact. */
int64_t buffer_overrun(const struct buffer *b);

/* Whether the address is in the buffer or in its guards; then *offset is relative to data. */
int buffer_holds(const struct buffer *b, const void *address, int64_t *offset);

/* The last `bytes` of a buffer, with the guard behind it and canaries of their own: what reaches as far as the page before them spoils
 * these. Not to be closed. */
struct buffer buffer_tail(const struct buffer *b, int64_t bytes);

/* Gives the memory back. The buffer is all zero afterwards. */
void buffer_close(struct buffer *b);

#endif
