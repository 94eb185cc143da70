/* The layout of device code in a package: a header, then its parts. */
#ifndef TILTH_DEVICECODE_H
#define TILTH_DEVICECODE_H
#include <stdint.h>

/* The sizes of a translation unit's parts: its NUL-terminated text, and code assembled for one chip, if any. */
struct tilth_device_parts {
  uint64_t text_bytes, assembled_bytes;
};

/* Returns the text. */
static inline const char *tilth_device_text(const char *parts) { return parts + sizeof(struct tilth_device_parts); }

/* Returns the assembled code, or NULL without any. */
static inline const char *tilth_device_assembled(const char *parts) {
  const struct tilth_device_parts *p = (const void *)parts;
  return p->assembled_bytes > 0 ? tilth_device_text(parts) + p->text_bytes : 0;
}

#endif
