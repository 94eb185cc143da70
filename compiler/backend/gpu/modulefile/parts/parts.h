/* How code for a device lies in a package: this, and the parts behind it. */
#ifndef TILTH_PARTS_H
#define TILTH_PARTS_H
#include <stdint.h>

/* The bytes of the parts of a translation unit's code: text, which ends with a zero, and what an assembler made of it for one chip, if one did. */
struct tilth_device_parts {
  uint64_t text_bytes, assembled_bytes;
};

/* The text. */
static inline const char *tilth_device_text(const char *parts) { return parts + sizeof(struct tilth_device_parts); }

/* What was assembled; NULL for nothing. */
static inline const char *tilth_device_assembled(const char *parts) {
  const struct tilth_device_parts *p = (const void *)parts;
  return p->assembled_bytes > 0 ? tilth_device_text(parts) + p->text_bytes : 0;
}

#endif
