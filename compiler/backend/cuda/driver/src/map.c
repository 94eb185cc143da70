#include "driver.h"

/* The types of a driver, by those of the ABI (enum tilth_dtype); -1 for those of which no boxes are copied. */
static const int types[] = {-1, CU_MAP_FLOAT32, -1, CU_MAP_FLOAT16, CU_MAP_BFLOAT16, CU_MAP_UINT8, CU_MAP_UINT16, CU_MAP_INT32, -1,
                            CU_MAP_UINT8, CU_MAP_UINT16, CU_MAP_UINT32, -1, CU_MAP_UINT8};

CUresult driver_encode(const struct driver *d, const struct tilth_boxes *boxes, CUdeviceptr address, struct driver_map *m) {
  uint64_t extents[TILTH_BOX_DIMENSIONS], strides[TILTH_BOX_DIMENSIONS] = {0};
  uint32_t box[TILTH_BOX_DIMENSIONS], steps[TILTH_BOX_DIMENSIONS];
  int swizzle = boxes->panel == 128 ? CU_SWIZZLE_128 : boxes->panel == 64 ? CU_SWIZZLE_64 : CU_SWIZZLE_32;
  if (!d->cuTensorMapEncodeTiled) return CUDA_ERROR_NOT_SUPPORTED;
  if (boxes->dtype < 0 || boxes->dtype >= (int32_t)(sizeof types / sizeof *types) || types[boxes->dtype] < 0) return CUDA_ERROR_INVALID_VALUE;
  for (int32_t k = 0; k < boxes->n; k++) {
    extents[k] = (uint64_t)boxes->extents[k], box[k] = (uint32_t)boxes->box[k], steps[k] = 1;
    if (k > 0) strides[k - 1] = (uint64_t)boxes->strides[k];
  }
  m->address = address;
  return d->cuTensorMapEncodeTiled(&m->map, types[boxes->dtype], (uint32_t)boxes->n, (void *)address, extents, strides, box, steps, 0, swizzle, CU_PROMOTE_128, 0);
}
