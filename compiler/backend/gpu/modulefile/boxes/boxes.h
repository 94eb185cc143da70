/* How boxes of a tensor are copied. A driver makes a tensor map of it, once it is known where the tensor lies. */
#ifndef TILTH_BOXES_H
#define TILTH_BOXES_H
#include <stdint.h>

enum { TILTH_BOX_DIMENSIONS = 5, TILTH_BOX_LENGTH = 256 };

/* Dimensions go from the innermost one, whose elements are neighbours. */
struct tilth_boxes {
  int32_t dtype; /* enum tilth_dtype */
  int32_t panel; /* the bytes of a row of a box, in whose pieces of 16 bytes others change places: 32, 64 or 128 */
  int32_t n;     /* dimensions */
  int64_t extents[TILTH_BOX_DIMENSIONS], strides[TILTH_BOX_DIMENSIONS]; /* in elements, and in bytes */
  int32_t box[TILTH_BOX_DIMENSIONS];
};

#endif
