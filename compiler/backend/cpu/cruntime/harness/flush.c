#include "flush.h"

#if defined(__x86_64__)
#include <cpuid.h>

__attribute__((target("clflushopt"))) static void flush_unordered(const char *line) { __builtin_ia32_clflushopt(line); }

static int has_clflushopt(void) {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & 1u << 23);
}

void flush_caches(const void *data, int64_t bytes) {
  const char *line = data, *end = line + bytes;
  if (has_clflushopt())
    for (; line < end; line += FLUSH_LINE) flush_unordered(line);
  else
    for (; line < end; line += FLUSH_LINE) __builtin_ia32_clflush(line);
  __builtin_ia32_mfence();
}

#elif defined(__aarch64__)

void flush_caches(const void *data, int64_t bytes) {
  for (const char *line = data, *end = line + bytes; line < end; line += FLUSH_LINE) __asm__ volatile("dc civac, %0" ::"r"(line) : "memory");
  __asm__ volatile("dsb ish" ::: "memory");
}

#else

void flush_caches(const void *data, int64_t bytes) { (void)data, (void)bytes; }

#endif
