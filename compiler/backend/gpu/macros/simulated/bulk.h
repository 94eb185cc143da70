/* Bulk copies, which one thread begins for all: they complete a phase of an mbarrier in shared memory. What they bring
 * is there for the threads that have waited for the phase, and for others behind the next barrier. */

SIM_STATIC struct sim_mbarrier *sim_mbarrier_at(struct sim_block *b, const struct sim_array *a, int64_t i) {
  for (int k = 0; k < b->n_mbarriers; k++)
    if (b->mbarriers[k].array == a && b->mbarriers[k].i == i) return &b->mbarriers[k];
  return 0;
}

SIM_CALLED void sim_init_mbarrier(struct sim_thread *sim, const struct sim_array *a, int64_t i, int arrivals,
                                  int line) {
  struct sim_block *b = sim->block;
  sim_write_shared(sim, a, i, 1, line);
  struct sim_mbarrier *m = sim_mbarrier_at(b, a, i);
  if (!m && b->n_mbarriers == SIM_MOST_MBARRIERS) sim_fail(b, "there are more than %d mbarriers", SIM_MOST_MBARRIERS);
  if (m && m->arrivals)
    sim_fail(b, "thread %d makes an mbarrier of %s[%lld] (line %d), which is one", sim->number, a->name, (long long)i,
             line);
  if (!m) m = &b->mbarriers[b->n_mbarriers++];
  *m = (struct sim_mbarrier){.array = a, .i = i, .arrivals = arrivals, .missing = arrivals};
}

/* The mbarrier that a thread uses, which it must know of. */
SIM_STATIC struct sim_mbarrier *sim_use_mbarrier(struct sim_thread *sim, const struct sim_array *a, int64_t i,
                                                 int line) {
  sim_read_shared(sim, a, i, 1, line);
  struct sim_mbarrier *m = sim_mbarrier_at(sim->block, a, i);
  if (!m || !m->arrivals)
    sim_fail(sim->block, "thread %d uses %s[%lld], which is no mbarrier (line %d)", sim->number, a->name, (long long)i,
             line);
  return m;
}

/* Ends an mbarrier, whose memory may be used for others. */
SIM_CALLED void sim_invalidate_mbarrier(struct sim_thread *sim, const struct sim_array *a, int64_t i, int line) {
  struct sim_mbarrier *m = sim_use_mbarrier(sim, a, i, line);
  if (m->missing < m->arrivals || m->under_way)
    sim_fail(sim->block, "thread %d ends %s[%lld] (line %d), and a phase of it has not ended", sim->number, a->name,
             (long long)i, line);
  sim_write_shared(sim, a, i, 1, line);
  m->arrivals = 0;
}

/* Whether everything that a phase waits for has arrived. Copies complete when they are checked. */
SIM_STATIC int sim_phase_is_over(struct sim_block *b, struct sim_mbarrier *m) {
  if (m->missing == 0 && m->under_way > m->expected)
    sim_fail(b, "copies bring %lld bytes for a phase of %s[%lld], which expects %lld", (long long)m->under_way,
             m->array->name, (long long)m->i, (long long)m->expected);
  return m->missing == 0 && m->under_way == m->expected;
}

/* Wakes those who wait for a phase that is over. */
SIM_STATIC void sim_wake_waiting(struct sim_block *b, struct sim_mbarrier *m) {
  if (!sim_phase_is_over(b, m)) return;
  for (int t = 0; t < b->launch->threads; t++)
    if (b->threads[t].place == SIM_AT_MBARRIER && b->threads[t].waits_for == m) {
      b->threads[t].waits_for = 0;
      sim_wake(&b->threads[t]);
    }
}

SIM_CALLED void sim_expect(struct sim_thread *sim, const struct sim_array *a, int64_t i, int bytes, int line) {
  struct sim_mbarrier *m = sim_use_mbarrier(sim, a, i, line);
  if (m->missing == 0)
    sim_fail(sim->block,
             "thread %d arrives at %s[%lld] (line %d), whose phase nobody else has to, before it waited for its end",
             sim->number, a->name, (long long)i, line);
  m->missing--, m->expected += bytes;
  sim_wake_waiting(sim->block, m);
}

/* The mbarrier of a bulk copy, which the copy finds past the threads. */
SIM_STATIC struct sim_mbarrier *sim_bulk_mbarrier(struct sim_thread *sim, const struct sim_array *mbarriers, int64_t k,
                                                  int line) {
  struct sim_mbarrier *m = sim_use_mbarrier(sim, mbarriers, k, line);
  const struct sim_cell *c = &mbarriers->cells[k];
  if (!sim_is_fenced(sim->block, c, sim->number == c->writer))
    sim_fail(sim->block,
             "thread %d copies for %s[%lld] (line %d), with no FENCE_ASYNC and barrier behind its beginning (line %d)",
             sim->number, mbarriers->name, (long long)k, line, c->write_line);
  return m;
}

SIM_STATIC void sim_begin_bulk(struct sim_block *b, int bytes, struct sim_bulk x) {
  if (b->n_bulk == SIM_MOST_BULK) sim_fail(b, "more than %d bulk copies are under way", SIM_MOST_BULK);
  b->bulk[b->n_bulk++] = x;
  x.mbarrier->under_way += bytes;
  sim_wake_waiting(b, x.mbarrier);
}

SIM_CALLED void sim_copy_bulk(struct sim_thread *sim, int bytes, const struct sim_array *to, int64_t i,
                              const struct sim_array *from, int64_t j, const struct sim_array *mbarriers, int64_t k,
                              int line) {
  struct sim_block *b = sim->block;
  int n = bytes / to->element_bytes;
  if (bytes < 16 || bytes % 16 || to->row)
    sim_fail(b, "thread %d copies %d bytes to %s (line %d), which is no multiple of 16, or swizzled", sim->number,
             bytes, to->name, line);
  struct sim_mbarrier *m = sim_bulk_mbarrier(sim, mbarriers, k, line);
  sim_write_shared(sim, to, i, n, line);
  sim_check_aligned(sim, to, i, 16, line);
  sim_read_global(sim, from, j, n, line);
  sim_check_aligned(sim, from, j, 16, line);
  for (int e = 0; e < n; e++) to->cells[i + e].copier = (uint16_t)(sim->number + 1);
  const char *source = from->memory + j * from->element_bytes;
  sim_begin_bulk(b, bytes, (struct sim_bulk){.mbarrier = m, .copy = {to, (int32_t)i, n, source, 0, line}});
}

/* Elements of a bulk copy are there: from nowhere, zeros. */
SIM_STATIC void sim_land(const struct sim_block *b, const struct sim_mbarrier *m, const struct sim_array *to,
                         int64_t first, int64_t elements, const char *from) {
  size_t size = (size_t)to->element_bytes, bytes = (size_t)elements * size;
  if (from)
    memcpy(to->memory + (size_t)first * size, from, bytes);
  else
    memset(to->memory + (size_t)first * size, 0, bytes);
  for (int64_t e = 0; e < elements; e++) {
    struct sim_cell *cell = &to->cells[first + e];
    cell->wrote = m->ended, cell->copier = 0, cell->fences = SIM_UNFENCED - (uint32_t)(m - b->mbarriers);
  }
}

SIM_STATIC void sim_land_box(const struct sim_block *b, const struct sim_bulk *x);

/* Ends a phase: its copies land. */
SIM_STATIC void sim_end_phase(struct sim_block *b, struct sim_mbarrier *m) {
  m->ended = sim_tick(b);
  for (int k = 0; k < b->n_bulk; k++) {
    const struct sim_bulk *x = &b->bulk[k];
    if (x->mbarrier != m) continue;
    if (x->is_box)
      sim_land_box(b, x);
    else
      sim_land(b, m, x->copy.to, x->copy.first, x->copy.elements, x->copy.from);
    b->bulk[k--] = b->bulk[--b->n_bulk];
  }
  m->phase++, m->missing = m->arrivals, m->expected = m->under_way = 0;
}

/* Waits for the end of the phase of a parity. */
SIM_CALLED void sim_wait_for_phase(struct sim_thread *sim, const struct sim_array *a, int64_t i, int parity, int line) {
  struct sim_block *b = sim->block;
  struct sim_mbarrier *m = sim_use_mbarrier(sim, a, i, line);
  if (parity != 0 && parity != 1) sim_fail(b, "thread %d waits for parity %d (line %d)", sim->number, parity, line);
  while ((m->phase & 1) == parity) {
    if (sim_phase_is_over(b, m)) {
      sim_wake_waiting(b, m);
      sim_end_phase(b, m);
    } else {
      sim->waits_for = m;
      sim_wait(sim, SIM_AT_MBARRIER, line);
    }
  }
  sim->seen[m - b->mbarriers] = m->ended;
}

/* Reports threads that wait for a phase that never ends. */
SIM_STATIC void sim_check_phases(const struct sim_block *b) {
  for (int t = 0; t < b->launch->threads; t++) {
    const struct sim_mbarrier *m = b->threads[t].waits_for;
    if (b->threads[t].place == SIM_AT_MBARRIER && m)
      sim_fail(b, "thread %d waits for a phase of %s[%lld] (line %d), of which %d arrivals and %lld bytes are missing",
               t, m->array->name, (long long)m->i, b->threads[t].line, m->missing,
               (long long)(m->expected - m->under_way));
  }
}

/* Checks that no copy is under way when a block ends. */
SIM_STATIC void sim_check_bulk(const struct sim_block *b) {
  if (b->n_bulk) sim_fail(b, "the block ends, and nobody has waited for the copy of line %d", b->bulk[0].copy.line);
}
