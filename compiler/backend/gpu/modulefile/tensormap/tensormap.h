/* Describes TMA copies of boxes of a tensor. Drivers encode it as a tensor map once the tensor's address is known. */
#ifndef TILTH_TENSORMAP_H
#define TILTH_TENSORMAP_H
#include <stdint.h>

enum { TILTH_BOX_DIMENSIONS = 5, TILTH_BOX_LENGTH = 256 };

/* The innermost dimension, whose elements are contiguous, comes first. */
struct tilth_boxes {
  int32_t dtype; /* enum tilth_dtype */
  int32_t panel; /* the row size of a box in bytes, within which 16-byte chunks are swizzled: 32, 64 or 128 */
  int32_t n;     /* dimensions */
  int64_t extents[TILTH_BOX_DIMENSIONS], strides[TILTH_BOX_DIMENSIONS]; /* in elements, and in bytes */
  int32_t box[TILTH_BOX_DIMENSIONS];
};

#endif
