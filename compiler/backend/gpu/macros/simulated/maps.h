/* Tensor maps, which describe how boxes of a tensor are copied. The format of a card's maps is private to its driver;
 * these hold the driver's arguments, within the documented limits. */
#include <stdint.h>

enum { SIM_MAP = 0x70616d74, SIM_MOST_DIMENSIONS = 5, SIM_MOST_BOX = 256 };

/* Dimensions go from the innermost one, whose elements are neighbours. */
struct sim_map {
  uint64_t address;
  /* How many bytes the elements of each dimension but the innermost are apart. */
  uint64_t strides[SIM_MOST_DIMENSIONS];
  uint32_t kind;                       /* SIM_MAP */
  uint32_t last[SIM_MOST_DIMENSIONS];  /* the last element */
  uint16_t box[SIM_MOST_DIMENSIONS];   /* the elements of a box */
  uint8_t dimensions, element_bytes;
  uint8_t panel;                       /* the bytes of a row of a box, which is swizzled */
};

/* What is wrong with a map; NULL for nothing. */
static inline __attribute__((unused)) const char *sim_map_mistake(const struct sim_map *m) {
  if (m->kind != SIM_MAP) return "is none";
  if (m->address % 16) return "begins at no multiple of 16 bytes";
  if (m->dimensions < 1 || m->dimensions > SIM_MOST_DIMENSIONS) return "has not 1 to 5 dimensions";
  for (int d = 0; d < m->dimensions; d++) {
    if (d > 0 && (m->strides[d] % 16 || m->strides[d] >= UINT64_C(1) << 40))
      return "has strides that are no multiples of 16 bytes";
    if (m->box[d] < 1 || m->box[d] > SIM_MOST_BOX) return "has boxes that are not 1 to 256 long";
  }
  if (m->box[0] * m->element_bytes % 16) return "has boxes whose rows are no multiples of 16 bytes";
  if (m->panel != 32 && m->panel != 64 && m->panel != 128) return "has no rows of 32, 64 or 128 bytes";
  if (m->box[0] * m->element_bytes > m->panel) return "has boxes whose rows are longer than what is swizzled";
  return 0;
}

/* The elements of a box. */
static inline __attribute__((unused)) int64_t sim_box_elements(const struct sim_map *m) {
  int64_t n = 1;
  for (int d = 0; d < m->dimensions; d++) n *= m->box[d];
  return n;
}
