/* Loads and stores: where they lie, and which others they must not meet. */

/* Whether an access of another thread was before what this one does now, for everybody to see: a barrier stood between,
 * of the block or of the warp of both. */
SIM_INLINE int sim_is_before(const struct sim_block *sim, uint32_t time, int thread) {
  return time < sim->barrier || thread / SIM_WARP == sim->thread / SIM_WARP && time < sim->warp_barrier[thread / SIM_WARP];
}

SIM_INLINE int sim_meets(const struct sim_block *sim, const struct sim_access *a) {
  if (a->time < sim->barrier || a->thread == sim->thread) return 0;
  return a->thread == SIM_SEVERAL || !sim_is_before(sim, a->time, a->thread);
}

SIM_RARE void sim_outside(const struct sim_block *sim, const char *array, int64_t i, int64_t elements, int line) {
  sim_fail(sim, "thread %d uses element %lld of %s, which has %lld (line %d)", sim->thread, (long long)i, array, (long long)elements, line);
}

SIM_RARE void sim_race(const struct sim_block *sim, const char *array, int64_t i, const char *does, int line, const char *did, const struct sim_access *a) {
  if (a->thread == SIM_SEVERAL)
    sim_fail(sim, "race: thread %d %s %s[%lld] (line %d), which several threads %s (line %d) with no barrier between", sim->thread, does, array,
             (long long)i, line, did, a->line);
  sim_fail(sim, "race: thread %d %s %s[%lld] (line %d), which thread %d %s (line %d) with no barrier between", sim->thread, does, array, (long long)i,
           line, a->thread, did, a->line);
}

SIM_INLINE int64_t sim_shared_read(struct sim_block *sim, const char *array, struct sim_cell *cells, int64_t i, int64_t elements, int line) {
  if ((uint64_t)i >= (uint64_t)elements) sim_outside(sim, array, i, elements, line);
  struct sim_cell *c = &cells[i];
  if (c->write.time == 0) sim_fail(sim, "thread %d reads %s[%lld], which nobody wrote (line %d)", sim->thread, array, (long long)i, line);
  if (sim_meets(sim, &c->write)) sim_race(sim, array, i, "reads", line, "wrote", &c->write);
  int several = c->read.time >= sim->barrier && c->read.time != 0 && c->read.thread != sim->thread;
  c->read = (struct sim_access){sim->now, several ? SIM_SEVERAL : (int16_t)sim->thread, (uint16_t)line};
  return i;
}

SIM_INLINE int64_t sim_shared_write(struct sim_block *sim, const char *array, struct sim_cell *cells, int64_t i, int64_t elements, int line) {
  if ((uint64_t)i >= (uint64_t)elements) sim_outside(sim, array, i, elements, line);
  struct sim_cell *c = &cells[i];
  if (c->write.time && sim_meets(sim, &c->write)) sim_race(sim, array, i, "writes", line, "wrote", &c->write);
  if (c->read.time && sim_meets(sim, &c->read)) sim_race(sim, array, i, "writes", line, "read", &c->read);
  c->write = (struct sim_access){sim->now, (int16_t)sim->thread, (uint16_t)line};
  return i;
}

/* An access of global memory by this thread: the thread among those of the grid, plus 1, and the time. */
enum { SIM_TIME_BITS = 24 };

SIM_INLINE uint64_t sim_global_access(const struct sim_block *sim) {
  return (uint64_t)(sim->block * sim->launch->threads + sim->thread + 1) << SIM_TIME_BITS | (sim->now & ((1u << SIM_TIME_BITS) - 1));
}

/* Whether an access of global memory is another thread's, with no barrier between: of another block there is none. */
SIM_INLINE int sim_global_meets(const struct sim_block *sim, uint64_t a) {
  if (a == 0) return 0;
  int64_t thread = (int64_t)(a >> SIM_TIME_BITS) - 1, first = sim->block * sim->launch->threads;
  if (thread == first + sim->thread) return 0;
  if (thread < first || thread >= first + sim->launch->threads) return 1;
  return !sim_is_before(sim, (uint32_t)(a & ((1u << SIM_TIME_BITS) - 1)), (int)(thread - first));
}

SIM_RARE void sim_global_race(const struct sim_block *sim, const char *array, int64_t i, const char *does, int line, const char *did, uint64_t a) {
  int64_t thread = (int64_t)(a >> SIM_TIME_BITS) - 1;
  sim_fail(sim, "race: thread %d %s %s[%lld] (line %d), which thread %lld of block %lld %s in the same launch", sim->thread, does, array, (long long)i,
           line, (long long)(thread % sim->launch->threads), (long long)(thread / sim->launch->threads), did);
}

SIM_INLINE int64_t sim_global_read(struct sim_block *sim, const char *array, struct sim_global_cell *cells, int64_t i, int64_t elements, int line) {
  if ((uint64_t)i >= (uint64_t)elements) sim_outside(sim, array, i, elements, line);
  if (cells) {
    uint64_t wrote = __atomic_load_n((uint64_t *)&cells[i].write, __ATOMIC_RELAXED);
    if (sim_global_meets(sim, wrote)) sim_global_race(sim, array, i, "reads", line, "wrote", wrote);
    __atomic_store_n((uint64_t *)&cells[i].read, sim_global_access(sim), __ATOMIC_RELAXED);
  }
  return i;
}

SIM_INLINE int64_t sim_global_write(struct sim_block *sim, const char *array, struct sim_global_cell *cells, int64_t i, int64_t elements, int line) {
  if ((uint64_t)i >= (uint64_t)elements) sim_outside(sim, array, i, elements, line);
  uint64_t wrote = __atomic_exchange_n((uint64_t *)&cells[i].write, sim_global_access(sim), __ATOMIC_RELAXED);
  if (sim_global_meets(sim, wrote)) sim_global_race(sim, array, i, "writes", line, "wrote", wrote);
  uint64_t read = __atomic_load_n((uint64_t *)&cells[i].read, __ATOMIC_RELAXED);
  if (sim_global_meets(sim, read)) sim_global_race(sim, array, i, "writes", line, "read", read);
  return i;
}

/* The cells of an array that the launch writes; none for one that it only reads. */
SIM_STATIC struct sim_global_cell *sim_cells_of(const struct sim_block *sim, const void *memory) {
  for (int k = 0; k < sim->launch->n_outputs; k++)
    if (sim->launch->outputs[k].memory == memory) return sim->launch->cells[k];
  return 0;
}

/* A shared array: all threads of the block declare the same ones in the same order. */
SIM_STATIC void *sim_declare(struct sim_block *sim, int64_t bytes, int64_t elements, struct sim_cell **cells) {
  char *memory = sim->shared + sim->declared_bytes;
  *cells = sim->cells + sim->declared_cells;
  sim->declared_bytes += (bytes + 15) & ~(int64_t)15;
  sim->declared_cells += elements;
  if (sim->declared_bytes > SIM_SHARED_BYTES) sim_fail(sim, "more than %d bytes of shared memory", SIM_SHARED_BYTES);
  if (sim->used_bytes < sim->declared_bytes) sim->used_bytes = sim->declared_bytes;
  if (sim->used_cells < sim->declared_cells) sim->used_cells = sim->declared_cells;
  return memory;
}
