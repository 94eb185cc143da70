/* Global memory: races within a launch. A barrier orders the threads of its block; nothing orders blocks. */

enum { SIM_TIME_BITS = 22, SIM_THREAD_BITS = 11, SIM_SEVERAL = SIM_MOST_THREADS, SIM_MOST_BLOCKS = (1 << 30) - 2 };

/* An access by a thread of a block at a time of that block. An atomic one meets no other of its kind. */
SIM_INLINE uint64_t sim_global_access(const struct sim_thread *sim, int thread, int atomic) {
  uint64_t time = sim->warp->time - sim->block->beginning;
  uint64_t who = ((uint64_t)sim->block->number + 1) << SIM_THREAD_BITS | (uint64_t)thread;
  return (who << SIM_TIME_BITS | time) << 1 | (uint64_t)atomic;
}

SIM_INLINE int64_t sim_block_of(uint64_t access) {
  return (int64_t)(access >> (SIM_TIME_BITS + SIM_THREAD_BITS + 1)) - 1;
}

SIM_INLINE int sim_thread_of(uint64_t access) {
  return (int)(access >> (SIM_TIME_BITS + 1)) & ((1 << SIM_THREAD_BITS) - 1);
}

/* Whether an access is another thread's, with nothing between it and what this one does now. */
SIM_INLINE int sim_meets(const struct sim_thread *sim, uint64_t access) {
  if (access == 0) return 0;
  if (sim_block_of(access) != sim->block->number) return 1;
  uint32_t time = (uint32_t)(access >> 1) & ((1u << SIM_TIME_BITS) - 1);
  return !sim_is_before(sim, sim_thread_of(access), time + sim->block->beginning);
}

SIM_RARE void sim_global_race(const struct sim_thread *sim, const struct sim_array *a, int64_t i, const char *does,
    int line, uint64_t access,
                              const char *did, int that_line) {
  char who[64];
  int thread = sim_thread_of(access);
  long long block = sim_block_of(access);
  snprintf(who, sizeof who, thread == SIM_SEVERAL ? "several threads" : "thread %d", thread);
  if (block == sim->block->number)
    sim_fail(sim->block,
        "race on %s[%lld]: thread %d %s it (line %d), and %s %s it (line %d), with no barrier between", a->name,
        (long long)i,
             sim->number, does, line, who, did, that_line);
  sim_fail(sim->block,
      "race on %s[%lld]: thread %d %s it (line %d), and %s of block %lld %s it (line %d) in the same launch", a->name,
      (long long)i,
           sim->number, does, line, who, block, did, that_line);
}

SIM_STATIC void sim_note_global_read(const struct sim_thread *sim, const struct sim_array *a, int64_t i, int line) {
  struct sim_global_cell *c = &a->global_cells[i];
  uint64_t mine = sim_global_access(sim, sim->number, 0), old = __atomic_load_n(&c->read, __ATOMIC_RELAXED);
  if (sim_meets(sim, old)) {
    uint64_t other = __atomic_load_n(&c->other, __ATOMIC_RELAXED);
    if (sim_block_of(old) != sim->block->number || !other || sim_block_of(other) == sim->block->number)
      __atomic_store_n(&c->other, old, __ATOMIC_RELAXED), c->other_line = c->read_line;
  }
  /* First the note, then the look, and so does who writes: one of both sees the other. */
  c->read_line = (uint16_t)line;
  __atomic_exchange_n(&c->read, mine, __ATOMIC_SEQ_CST);
  uint64_t wrote = __atomic_load_n(&c->write, __ATOMIC_SEQ_CST);
  if (sim_meets(sim, wrote))
    sim_global_race(sim, a, i, "reads", line, wrote, wrote & 1 ? "added to" : "wrote", c->write_line);
}

SIM_STATIC void sim_note_global_write(const struct sim_thread *sim, const struct sim_array *a, int64_t i, int atomic,
    int line) {
  struct sim_global_cell *c = &a->global_cells[i];
  uint64_t old = __atomic_load_n(&c->write, __ATOMIC_RELAXED);
  int several = atomic && old & 1 && sim_meets(sim, old), that_line = c->write_line;
  c->write_line = (uint16_t)line;
  uint64_t mine = sim_global_access(sim, several ? SIM_SEVERAL : sim->number, atomic);
  old = __atomic_exchange_n(&c->write, mine, __ATOMIC_SEQ_CST);
  const char *does = atomic ? "adds to" : "writes";
  if (sim_meets(sim, old) && !(atomic && old & 1))
    sim_global_race(sim, a, i, does, line, old, old & 1 ? "added to" : "wrote", that_line);
  uint64_t read = __atomic_load_n(&c->read, __ATOMIC_SEQ_CST), other = __atomic_load_n(&c->other, __ATOMIC_SEQ_CST);
  if (sim_meets(sim, read)) sim_global_race(sim, a, i, does, line, read, "read", c->read_line);
  if (sim_meets(sim, other)) sim_global_race(sim, a, i, does, line, other, "read", c->other_line);
}

SIM_CALLED void sim_note_global_reads(const struct sim_thread *sim, const struct sim_array *a, int64_t i, int n,
    int line) {
  for (int k = 0; k < n; k++) sim_note_global_read(sim, a, i + k, line);
}

/* The accesses of n elements from i on return i. */
SIM_INLINE int64_t sim_read_global(const struct sim_thread *sim, const struct sim_array *a, int64_t i, int n,
    int line) {
  sim_check_bounds(sim, a, i, n, line);
  if (a->global_cells) sim_note_global_reads(sim, a, i, n, line);
  return i;
}

SIM_CALLED int64_t sim_write_global(const struct sim_thread *sim, const struct sim_array *a, int64_t i, int n,
    int atomic, int line) {
  sim_check_bounds(sim, a, i, n, line);
  if (!a->global_cells)
    sim_fail(sim->block, "thread %d writes %s, which is no output of the launch (line %d)", sim->number, a->name,
        line);
  for (int k = 0; k < n; k++) sim_note_global_write(sim, a, i + k, atomic, line);
  return i;
}

SIM_STATIC struct sim_array sim_declare_global(const struct sim_thread *sim, const char *name, const void *memory,
    int32_t elements, int32_t element_bytes) {
  const struct sim_launch *l = sim->block->launch;
  struct sim_array a = {name, (char *)memory, elements, element_bytes, 0, 0, 0, 0};
  for (int k = 0; k < l->n_outputs; k++)
    if (l->outputs[k].memory == memory) {
      if (elements > l->outputs[k].elements)
        sim_fail(sim->block, "%s has %d elements in the kernel, and %lld in the launch", name, elements,
            (long long)l->outputs[k].elements);
      a.global_cells = l->cells[k];
    }
  return a;
}

SIM_STATIC void sim_add_float(float *to, float v) {
  uint32_t old = __atomic_load_n((uint32_t *)to, __ATOMIC_RELAXED), sum;
  do {
    float x;
    memcpy(&x, &old, sizeof x);
    x += v;
    memcpy(&sum, &x, sizeof sum);
  } while (!__atomic_compare_exchange_n((uint32_t *)to, &old, sum, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

SIM_STATIC void sim_add_int(int32_t *to, int32_t v) { __atomic_fetch_add(to, v, __ATOMIC_RELAXED); }
