/* Shared memory: checks for uninitialised reads and for races. */

SIM_RARE void sim_race(const struct sim_thread *sim, const struct sim_array *a, int64_t i, const char *does, int line,
    int thread, const char *did,
                       int that_line) {
  sim_fail(sim->block,
      "race on %s[%lld]: thread %d %s it (line %d), and thread %d %s it (line %d), with no barrier between", a->name,
      (long long)sim_element_at(a, i),
           sim->number, does, line, thread, did, that_line);
}

SIM_RARE void sim_copy_on_its_way(const struct sim_thread *sim, const struct sim_array *a, int64_t i, const char *does,
    int line) {
  const struct sim_cell *c = &a->cells[i];
  sim_fail(sim->block, "thread %d %s %s[%lld] (line %d), and thread %d has not waited for its copy of it (line %d)",
      sim->number, does, a->name,
           (long long)sim_element_at(a, i), line, c->copier - 1, c->write_line);
}

/* Keeps, of all who have read an element since the barrier, two that every write would meet which meets any. */
SIM_INLINE void sim_keep_reader(const struct sim_thread *sim, struct sim_cell *c, int line) {
  uint32_t time = sim->warp->time;
  int me = sim->number, warp = me / SIM_WARP;
  if (c->read < sim->block->barrier) {
    c->other = 0;
  } else if (c->reader / SIM_WARP == warp) {
    int other_is_here = c->other && (c->other - 1) / SIM_WARP == warp;
    if (time > c->read && other_is_here)
      c->other = 0;
    else if (time == c->read && !c->other && c->reader != me)
      c->other = c->reader + 1, c->other_line = c->read_line;
  } else {
    if (!c->other || (c->other - 1) / SIM_WARP == c->reader / SIM_WARP)
      c->other = me + 1, c->other_line = (uint16_t)line;
    return;
  }
  c->read = time, c->reader = (uint16_t)me, c->read_line = (uint16_t)line;
}

/* Checks that an element was written, and is not on its way. */
SIM_INLINE void sim_check_arrived(const struct sim_thread *sim, const struct sim_array *a, int64_t i, int line) {
  const struct sim_cell *c = &a->cells[i];
  if (__builtin_expect(c->wrote < sim->block->beginning, 0))
    sim_fail(sim->block, "thread %d reads %s[%lld], which nobody wrote (line %d)", sim->number, a->name,
             (long long)sim_element_at(a, i), line);
  if (__builtin_expect(c->copier != 0, 0)) sim_copy_on_its_way(sim, a, i, "reads", line);
}

SIM_INLINE void sim_note_read(const struct sim_thread *sim, const struct sim_array *a, int64_t i, int line) {
  struct sim_cell *c = &a->cells[i];
  sim_check_arrived(sim, a, i, line);
  if (__builtin_expect(!sim_is_written_before(sim, c), 0))
    sim_race(sim, a, i, "reads", line, c->writer, "wrote", c->write_line);
  sim_keep_reader(sim, c, line);
}

SIM_RARE void sim_product_reads(const struct sim_thread *sim, const struct sim_array *a, int64_t i, int line);

SIM_INLINE void sim_note_write(const struct sim_thread *sim, const struct sim_array *a, int64_t i, int line) {
  struct sim_cell *c = &a->cells[i];
  if (__builtin_expect(c->wrote >= sim->block->beginning, 1)) {
    if (__builtin_expect(c->copier != 0, 0)) sim_copy_on_its_way(sim, a, i, "writes", line);
    if (__builtin_expect(c->products != 0, 0)) sim_product_reads(sim, a, i, line);
    if (__builtin_expect(!sim_is_written_before(sim, c), 0))
      sim_race(sim, a, i, "writes", line, c->writer, "wrote", c->write_line);
    if (c->read >= sim->block->barrier) {
      if (__builtin_expect(!sim_is_before(sim, c->reader, c->read), 0))
        sim_race(sim, a, i, "writes", line, c->reader, "read", c->read_line);
      if (__builtin_expect(c->other && !sim_is_before(sim, c->other - 1, c->read), 0))
        sim_race(sim, a, i, "writes", line, c->other - 1, "read", c->other_line);
    }
  }
  c->copier = c->products = 0;
  c->fences = sim->fences.n;
  c->wrote = sim->warp->time, c->writer = (uint16_t)sim->number, c->write_line = (uint16_t)line;
}

/* The accesses of n elements from i on return the place of i. Neighbours that are aligned to their size stay
 * neighbours. */
SIM_CALLED int64_t sim_read_shared(const struct sim_thread *sim, const struct sim_array *a, int64_t i, int n,
    int line) {
  sim_check_bounds(sim, a, i, n, line);
  i = sim_place_of(a, i);
  for (int k = 0; k < n; k++) sim_note_read(sim, a, i + k, line);
  return i;
}

SIM_CALLED int64_t sim_write_shared(const struct sim_thread *sim, const struct sim_array *a, int64_t i, int n,
    int line) {
  sim_check_bounds(sim, a, i, n, line);
  i = sim_place_of(a, i);
  for (int k = 0; k < n; k++) sim_note_write(sim, a, i + k, line);
  return i;
}

/* The array that a thread declares, of matrices that are swizzled where row is not 0. All threads of a block declare
 * the same ones in the same order; the first one makes them. */
SIM_CALLED const struct sim_array *sim_declare_matrices(struct sim_thread *sim, const char *name, int32_t elements,
    int32_t element_bytes, int32_t row, int32_t rows) {
  struct sim_block *b = sim->block;
  struct sim_array *a = &b->arrays[sim->arrays];
  if (sim->arrays++ < b->n_arrays) return a;
  if (b->n_arrays++ == SIM_MOST_ARRAYS) sim_fail(b, "there are more than %d shared arrays", SIM_MOST_ARRAYS);
  if (row) b->shared_bytes = (b->shared_bytes + 1023) & ~(int64_t)1023;
  *a = (struct sim_array){name, b->shared + b->shared_bytes, elements, element_bytes,
                          b->cells + b->shared_elements, 0, row, rows};
  b->shared_elements += elements;
  b->shared_bytes += ((int64_t)elements * element_bytes + 15) & ~(int64_t)15;
  if (b->shared_bytes > SIM_SHARED_BYTES)
    sim_fail(b, "%s begins in and ends behind %d bytes of shared memory", name, SIM_SHARED_BYTES);
  int width = row * element_bytes;
  if (row && ((width != 32 && width != 64 && width % 128) || rows < 8 || rows % 8 || elements % (row * rows)))
    sim_fail(b, "%s has no matrices that can be swizzled: %d rows of %d bytes", name, rows, width);
  return a;
}

SIM_INLINE const struct sim_array *sim_declare_shared(struct sim_thread *sim, const char *name, int32_t elements,
    int32_t element_bytes) {
  return sim_declare_matrices(sim, name, elements, element_bytes, 0, 0);
}

/* What threads have written to shared memory is there for instructions that read it past them, behind a barrier. */
SIM_CALLED void sim_fence_async(struct sim_thread *sim) {
  struct sim_fences *f = &sim->fences;
  if (f->n == f->capacity) {
    f->capacity = 2 * f->capacity + 16;
    f->times = realloc(f->times, f->capacity * sizeof *f->times);
    if (!f->times) sim_fail(sim->block, "there is no memory for fences");
  }
  f->times[f->n++] = sim->block->clock;
}
