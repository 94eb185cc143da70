/* Bulk copies of boxes of a tensor to swizzled matrices, as described by a tensor map. Elements of a box outside the
 * tensor are zero. */

/* Checks that a map is that of the array in global memory which a kernel takes it for. */
SIM_CALLED void sim_check_map(const struct sim_thread *sim, const char *name, const struct sim_map *m,
                              const struct sim_array *a, int line) {
  const char *mistake = sim_map_mistake(m);
  if (mistake) sim_fail(sim->block, "the tensor map %s %s (line %d)", name, mistake, line);
  if ((const char *)(uintptr_t)m->address != a->memory || m->element_bytes != a->element_bytes)
    sim_fail(sim->block, "the tensor map %s is not that of %s (line %d)", name, a->name, line);
}

/* Where element n of a box comes from; NULL for zero. */
SIM_STATIC const char *sim_box_source(const struct sim_bulk *x, int64_t n) {
  const struct sim_map *m = &x->map;
  uint64_t at = m->address;
  for (int d = 0; d < m->dimensions; d++) {
    int64_t place = x->begin[d] + n % m->box[d];
    n /= m->box[d];
    if (place < 0 || place > m->last[d]) return 0;
    at += (uint64_t)place * (d ? m->strides[d] : m->element_bytes);
  }
  return (const char *)(uintptr_t)at;
}

/* Where element n of a box goes to, in elements of the array: pieces of 16 bytes change places by their address. */
SIM_STATIC int64_t sim_box_place(const struct sim_block *b, const struct sim_bulk *x, int64_t n) {
  const struct sim_array *to = x->copy.to;
  int64_t size = to->element_bytes, base = to->memory - b->shared;
  int64_t at = base + x->copy.first * size + n * size;
  at ^= (at >> 7 & (x->map.panel / 16 - 1)) << 4;
  return (at - base) / size;
}

SIM_STATIC void sim_land_box(const struct sim_block *b, const struct sim_bulk *x) {
  for (int64_t n = 0; n < x->copy.elements; n++)
    sim_land(b, x->mbarrier, x->copy.to, sim_box_place(b, x, n), 1, sim_box_source(x, n));
}

/* Checks that boxes of a map can be copied to an array from a place on. */
SIM_STATIC void sim_check_box(const struct sim_thread *sim, const struct sim_array *to, int64_t i, int dimensions,
                              const struct sim_map *m, int line) {
  if (m->dimensions != dimensions)
    sim_fail(sim->block, "thread %d copies a box of %d dimensions (line %d), and the tensor map has %d", sim->number,
             dimensions, line, m->dimensions);
  int panel = to->row ? tilth_panel(to->element_bytes, to->row) : 0;
  if (panel != m->panel || panel != m->box[0] * m->element_bytes || m->element_bytes != to->element_bytes)
    sim_fail(sim->block, "thread %d copies boxes with rows of %d bytes to %s (line %d), whose panels have %d",
             sim->number, m->box[0] * m->element_bytes, to->name, line, panel);
  sim_check_bounds(sim, to, i, 1, line);
  if (((uintptr_t)(to->memory - sim->block->shared) + (uintptr_t)(sim_place_of(to, i) * to->element_bytes)) % 128)
    sim_fail(sim->block, "thread %d copies a box to element %lld of %s (line %d), which is not aligned to 128 bytes",
             sim->number, (long long)i, to->name, line);
}

SIM_CALLED void sim_copy_tensor(struct sim_thread *sim, const struct sim_array *to, int64_t i, const struct sim_map *map,
                                const struct sim_array *from, int dimensions, const int *begin,
                                const struct sim_array *mbarriers, int64_t k, int line) {
  struct sim_block *b = sim->block;
  sim_check_box(sim, to, i, dimensions, map, line);
  struct sim_bulk x = {.mbarrier = sim_bulk_mbarrier(sim, mbarriers, k, line), .is_box = 1, .map = *map};
  int64_t elements = sim_box_elements(map);
  x.copy = (struct sim_copy){to, (int32_t)sim_place_of(to, i), (int32_t)elements, 0, 0, line};
  memcpy(x.begin, begin, (size_t)dimensions * sizeof *begin);
  for (int64_t n = 0; n < elements; n++) {
    int64_t place = sim_box_place(b, &x, n);
    const char *source = sim_box_source(&x, n);
    sim_check_bounds(sim, to, place, 1, line);
    sim_note_write(sim, to, place, line);
    to->cells[place].copier = (uint16_t)(sim->number + 1);
    if (source) sim_read_global(sim, from, (source - from->memory) / from->element_bytes, 1, line);
  }
  sim_begin_bulk(b, (int)(elements * map->element_bytes), x);
}
