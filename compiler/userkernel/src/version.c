/* Reads the versions of libraries as they tell them, and compares them with those that kernels were measured with. */
#include <stdio.h>
#include <string.h>

enum { VERSION_BYTES = 64 };

static char complaint[256] __attribute__((unused));

static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* Finds the first dotted number in a text; empty without one. */
static void __attribute__((unused)) dotted(char *found, const char *text) {
  found[0] = 0;
  for (const char *at = text ? text : ""; *at; at++) {
    size_t n = 0, dots = 0;
    while (is_digit(at[n]) || (n > 0 && at[n] == '.' && is_digit(at[n + 1]))) dots += at[n++] == '.';
    if (dots > 0 && n < VERSION_BYTES) {
      memcpy(found, at, n);
      found[n] = 0;
      return;
    }
    if (n > 0) at += n - 1;
  }
}

static void __attribute__((unused)) numbers(char *found, const void *from, int n) {
  found[0] = 0;
  for (int i = 0, at = 0; from && i < n; i++) at += snprintf(found + at, (size_t)(VERSION_BYTES - at), i ? ".%d" : "%d", ((const int *)from)[i]);
}

static void __attribute__((unused)) properties(char *found, int (*property)(int, int *), int n) {
  int parts[4];
  found[0] = 0;
  for (int i = 0; i < n; i++)
    if (property(i, &parts[i])) return;
  numbers(found, parts, n);
}

static int __attribute__((unused)) differs(const char *soname, const char *wanted, const char *found) {
  if (strcmp(found, wanted) == 0) return 0;
  snprintf(complaint, sizeof complaint, "%s has version %s here, and the kernel was measured with %s: tune and compile it again on this machine, or install that version",
           soname, found[0] ? found : "unknown", wanted);
  return 1;
}
