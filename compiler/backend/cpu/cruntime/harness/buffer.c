#define _GNU_SOURCE
#include "buffer.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGN = 64, CANARY = 0xC5 };
/* A vector loop that is off by one row should still hit the guard. */
#define GUARD_BYTES (64 << 10)
#define HUGE_PAGE (2 << 20)

static int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

int buffer_open(struct buffer *b, const char *name, int64_t bytes, int64_t behind) {
  int64_t padded = round_up(bytes, ALIGN), page = sysconf(_SC_PAGESIZE);
  int64_t inside = round_up(padded ? padded : 1, page);
  behind = round_up(behind > GUARD_BYTES ? behind : GUARD_BYTES, page);
  unsigned char *all = mmap(NULL, GUARD_BYTES + inside + behind, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return errno;
  *b = (struct buffer){name, NULL, bytes, all + GUARD_BYTES, inside, behind};
  if (mprotect(b->pages, inside, PROT_READ | PROT_WRITE)) {
    int error = errno;
    munmap(all, GUARD_BYTES + inside + behind);
    return error;
  }
  if (inside >= 2 * HUGE_PAGE) madvise(b->pages, inside, MADV_HUGEPAGE);
  b->data = b->pages + inside - padded;
  buffer_mark(b);
  return 0;
}

void buffer_mark(struct buffer *b) {
  unsigned char *end = b->data + b->bytes;
  memset(b->pages, CANARY, b->data - b->pages);
  memset(end, CANARY, b->pages + b->pages_bytes - end);
}

void buffer_poison(struct buffer *b) {
  buffer_mark(b);
  memset(b->data, POISON, b->bytes);
}

int buffer_protect(struct buffer *b) { return mprotect(b->pages, b->pages_bytes, PROT_READ) ? errno : 0; }

int buffer_unprotect(struct buffer *b) { return mprotect(b->pages, b->pages_bytes, PROT_READ | PROT_WRITE) ? errno : 0; }

void buffer_hide_end(struct buffer *b) {
  if (b->pages) mprotect(b->pages + b->pages_bytes, b->behind, PROT_NONE);
}

void buffer_show_end(struct buffer *b) {
  unsigned char *end = b->pages + b->pages_bytes;
  if (!b->pages || mprotect(end, b->behind, PROT_READ)) return; /* then prefetches are slower */
  for (int64_t k = 0, page = sysconf(_SC_PAGESIZE); k < b->behind; k += page) (void)*(volatile unsigned char *)(end + k);
}

int64_t buffer_overrun(const struct buffer *b) {
  const unsigned char *end = b->data + b->bytes;
  for (const unsigned char *p = b->pages + b->pages_bytes; p-- > end;)
    if (*p != CANARY) return p - end + 1;
  for (const unsigned char *p = b->pages; p < b->data; p++)
    if (*p != CANARY) return p - b->data;
  return 0;
}

int buffer_holds(const struct buffer *b, const void *address, int64_t *offset) {
  const unsigned char *p = address;
  *offset = p - b->data;
  return b->pages && p >= b->pages - GUARD_BYTES && p < b->pages + b->pages_bytes + b->behind;
}

struct buffer buffer_tail(const struct buffer *b, int64_t bytes) {
  unsigned char *data = b->data + round_up(b->bytes, ALIGN) - round_up(bytes, ALIGN);
  int64_t page = sysconf(_SC_PAGESIZE), before = (data - b->pages) / page * page;
  return (struct buffer){b->name, data, bytes, b->pages + before, b->pages_bytes - before, b->behind};
}

void buffer_close(struct buffer *b) {
  if (b->pages) munmap(b->pages - GUARD_BYTES, GUARD_BYTES + b->pages_bytes + b->behind);
  *b = (struct buffer){0};
}
