/* What lies behind each buffer of a device that has no pages of its own to guard them, and is the same afterwards. */
#ifndef TILTH_FENCE_H
#define TILTH_FENCE_H
#include <stdint.h>
#include <stdio.h>

enum { FENCE = 4096, FENCE_VALUE = 0xC5 };

/* Whether a fence, as it came back from the device, was written on; then there is a message. */
static inline int fence_spoilt(const unsigned char *fence, const char *name, char *message, int message_bytes) {
  int32_t last = FENCE;
  while (last > 0 && fence[last - 1] == FENCE_VALUE) last--;
  if (last == 0) return 0;
  snprintf(message, message_bytes, "writes %d bytes past the end of %s", last, name);
  return -1;
}

#endif
