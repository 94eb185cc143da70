/* What is found behind the end of a buffer while it is hidden, and while it is shown. */
#define _GNU_SOURCE
#include "buffer.c"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>

static sigjmp_buf fault;

static void on_fault(int signal) { siglongjmp(fault, signal); }

static int reads(const unsigned char *p) { return !sigsetjmp(fault, 1) && *(volatile const unsigned char *)p == 0; }

static int writes(unsigned char *p) {
  if (sigsetjmp(fault, 1)) return 0;
  *(volatile unsigned char *)p = 1;
  return 1;
}

static int bad;

static void expect(int ok, const char *what, int64_t bytes) {
  if (!ok) printf("%lld bytes: %s\n", (long long)bytes, what), bad = 1;
}

static void check(int64_t bytes, int64_t behind) {
  struct buffer b;
  if (buffer_open(&b, "buffer", bytes, behind)) {
    expect(0, "cannot be opened", bytes);
    return;
  }
  unsigned char *first = b.pages + b.pages_bytes, *last = first + behind - 1;
  expect(!reads(first) && !reads(last), "the end is not hidden at first", bytes);
  buffer_show_end(&b);
  expect(reads(first) && reads(last), "there are no zeros behind the end that is shown", bytes);
  expect(!writes(first) && !writes(last), "the end that is shown can be written to", bytes);
  expect(buffer_overrun(&b) == 0, "showing the end spoils canaries", bytes);
  struct buffer tail = buffer_tail(&b, bytes / 2);
  buffer_hide_end(&tail);
  expect(!reads(first) && !reads(last), "the end that is hidden again can be read", bytes);
  expect(writes(b.data + bytes - 1), "hiding the end hides the buffer", bytes);
  buffer_close(&b);
  buffer_show_end(&b); /* of what is closed, nothing */
  buffer_hide_end(&b);
}

int main(void) {
  struct sigaction action = {.sa_handler = on_fault};
  sigaction(SIGSEGV, &action, NULL);
  check(1, 100);
  check(64, 64 << 10);
  check(4096, 1 << 20);
  check((4 << 20) + 1, 1 << 20);
  return bad;
}
