#include "vectors.h"

#include <stddef.h>

#if __ARM_FEATURE_SVE_BITS > 0
#include <stdint.h>
#include <stdio.h>
#include <sys/auxv.h>

/* Of <asm/hwcap.h>, which is younger than some systems. */
#define HAS_SVE (1ul << 22)

const char *tilth_vectors_unfit(void) {
  static _Thread_local char text[128];
  uint64_t bytes;
  if (!(getauxval(AT_HWCAP) & HAS_SVE)) return "the code needs SVE, which this processor or its kernel does not have: compile for this machine";
  __asm__ volatile("rdvl %0, #1" : "=r"(bytes));
  if (8 * bytes == __ARM_FEATURE_SVE_BITS) return NULL;
  snprintf(text, sizeof text, "the code needs SVE registers of %d bits, and those of this process have %d: compile for this machine",
           __ARM_FEATURE_SVE_BITS, (int)(8 * bytes));
  return text;
}
#else
const char *tilth_vectors_unfit(void) { return NULL; }
#endif
