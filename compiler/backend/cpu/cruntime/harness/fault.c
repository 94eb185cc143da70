#define _GNU_SOURCE
#include "fault.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A signal handler has no argument of ours. */
static struct {
  const struct bench *bench;
  const struct loaded *loaded;
  volatile int32_t index;
} watched;

static void describe(int signal, const siginfo_t *info, char *text, int bytes) {
  int64_t offset;
  const struct buffer *b = NULL;
  if (signal == SIGSEGV || signal == SIGBUS) b = bench_find(watched.bench, watched.loaded, info->si_addr, &offset);
  if (!b)
    snprintf(text, bytes, "%s", strsignal(signal));
  else if (offset < 0)
    snprintf(text, bytes, "touches memory %lld bytes before the beginning of %s", (long long)-offset, b->name);
  else if (offset >= b->bytes)
    snprintf(text, bytes, "touches memory %lld bytes past the end of %s", (long long)(offset - b->bytes + 1), b->name);
  else
    snprintf(text, bytes, "writes to %s, which is read-only, at byte %lld", b->name, (long long)offset);
}

static void on_fault(int signal, siginfo_t *info, void *context) {
  char text[256];
  describe(signal, info, text, sizeof text);
  report_fault(watched.index, text);
  _exit(128 + signal);
}

void fault_catch(const struct bench *b) {
  static unsigned char stack[64 << 10]; /* the kernel's own may be what overflowed */
  static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGXFSZ};
  watched.bench = b;
  stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
  sigaltstack(&alternate, NULL);
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  for (unsigned k = 0; k < sizeof signals / sizeof *signals; k++) sigaction(signals[k], &action, NULL);
}

void fault_report(const char *text) {
  report_fault(watched.index, text);
  _exit(1);
}

void fault_report_timeout(const char *text) {
  report_timeout(watched.index, text);
  _exit(1);
}

void fault_watch(int32_t index, const struct loaded *l) { watched.index = index, watched.loaded = l; }
