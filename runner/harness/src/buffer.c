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

int buffer_open(struct buffer *b, const char *name, int64_t bytes) {
  int64_t padded = round_up(bytes, ALIGN);
  int64_t inside = round_up(padded ? padded : 1, sysconf(_SC_PAGESIZE));
  unsigned char *all = mmap(NULL, inside + 2 * GUARD_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return errno;
  *b = (struct buffer){name, NULL, bytes, all + GUARD_BYTES, inside};
  if (mprotect(b->pages, inside, PROT_READ | PROT_WRITE)) {
    int error = errno;
    munmap(all, inside + 2 * GUARD_BYTES);
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
  return b->pages && p >= b->pages - GUARD_BYTES && p < b->pages + b->pages_bytes + GUARD_BYTES;
}

struct buffer buffer_tail(const struct buffer *b, int64_t bytes) {
  unsigned char *data = b->data + round_up(b->bytes, ALIGN) - round_up(bytes, ALIGN);
  int64_t page = sysconf(_SC_PAGESIZE), before = (data - b->pages) / page * page;
  return (struct buffer){b->name, data, bytes, b->pages + before, b->pages_bytes - before};
}

void buffer_close(struct buffer *b) {
  if (b->pages) munmap(b->pages - GUARD_BYTES, b->pages_bytes + 2 * GUARD_BYTES);
  b->pages = NULL;
}
