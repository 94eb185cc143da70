/* Asynchronous copies: what they bring is there when the thread that began them has waited for them, and for other
 * threads behind the next barrier. */

SIM_CALLED void sim_copy(struct sim_thread *sim, int bytes, const struct sim_array *to, int64_t i,
    const struct sim_array *from, int64_t j, int valid,
                         int line) {
  int n = bytes / to->element_bytes;
  i = sim_write_shared(sim, to, i, n, line);
  sim_check_aligned(sim, to, i, bytes, line);
  for (int k = 0; k < n; k++) to->cells[i + k].copier = (uint16_t)(sim->number + 1);
  const char *source = 0;
  if (valid) {
    source = from->memory + sim_read_global(sim, from, j, n, line) * from->element_bytes;
    sim_check_aligned(sim, from, j, bytes, line);
  }
  struct sim_copies *c = &sim->copies;
  if (c->begin == c->end) c->begin = c->end = 0;
  if (c->end == c->capacity) {
    c->capacity = 2 * c->capacity + 16;
    c->list = realloc(c->list, (size_t)c->capacity * sizeof *c->list);
    if (!c->list) sim_fail(sim->block, "there is no memory for copies");
  }
  c->list[c->end++] = (struct sim_copy){to, (int32_t)i, n, source, c->committed, line};
}

/* Waits until at most n of the groups that were committed are under way. */
SIM_CALLED void sim_wait_for_copies(struct sim_thread *sim, uint32_t n) {
  struct sim_copies *c = &sim->copies;
  for (; c->begin < c->end && c->list[c->begin].group + n < c->committed; c->begin++) {
    const struct sim_copy *x = &c->list[c->begin];
    int size = x->to->element_bytes;
    for (int k = 0; k < x->elements; k++) {
      struct sim_cell *cell = &x->to->cells[x->first + k];
      cell->wrote = sim->warp->time, cell->copier = 0, cell->fences = sim->fences.n;
    }
    char *place = x->to->memory + (int64_t)x->first * size;
    if (x->from)
      memcpy(place, x->from, (size_t)x->elements * size);
    else
      memset(place, 0, (size_t)x->elements * size);
  }
}
