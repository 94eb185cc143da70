/* A block of threads on one worker: who runs, who waits, and what stands between accesses. */

enum sim_place { SIM_NOT_STARTED, SIM_RUNS, SIM_AT_BARRIER, SIM_IN_WARP, SIM_IN_GROUP, SIM_AT_MBARRIER, SIM_ENDED };

/* An asynchronous copy on its way to shared memory; from nowhere, of zeros. */
struct sim_copy {
  const struct sim_array *to;
  int32_t first, elements;
  const void *from;
  uint32_t group;
  int line;
};

/* A thread's copies from begin to end, the oldest first. A copy's group is complete when so many are committed. */
struct sim_copies {
  struct sim_copy *list;
  int begin, end, capacity;
  uint32_t committed;
};

/* An mbarrier: who must still arrive in its phase, which bytes are expected then and under way, when the last phase
 * ended. */
struct sim_mbarrier {
  const struct sim_array *array;
  int64_t i, expected, under_way;
  int arrivals, missing, phase;
  uint32_t ended;
};

/* A bulk copy under way, of neighbours or of the box of a tensor that begins somewhere. */
struct sim_bulk {
  struct sim_mbarrier *mbarrier;
  struct sim_copy copy;
  int is_box, begin[SIM_MOST_DIMENSIONS];
  struct sim_map map;
};

/* When a thread has used FENCE_ASYNC, by the block's clock. */
struct sim_fences {
  uint32_t *times;
  uint32_t n, capacity;
};

struct sim_thread {
  struct sim_block *block;
  struct sim_warp *warp;
  int number, lane;
  /* Where it goes on when it waits. */
  void *stack_pointer;
  enum sim_place place;
  int line;
  /* How many shared arrays it has declared. */
  int arrays;
  struct sim_copies copies;
  struct sim_fences fences;
  /* The groups of products that it has committed, and whether products may begin. */
  uint32_t products_committed;
  int products_fenced;
  /* The mbarrier at which it waits, and the ends of phases that it has observed. */
  const struct sim_mbarrier *waits_for;
  uint32_t seen[SIM_MOST_MBARRIERS];
};

/* What a lane gives to a collective of its warp, and where it wants the result. */
struct sim_lane {
  const void *a, *b;
  void *result;
  int64_t argument;
};

struct sim_warp {
  /* When its threads last waited for one another, if not for the block. */
  uint32_t time;
  int lanes, arrived, line;
  const char *collective;
  struct sim_lane lane[SIM_WARP];
};

struct sim_launch {
  const char *kernel;
  void (*thread)(struct sim_thread *sim, void *closure);
  void *closure;
  int threads;
  const struct sim_output *outputs;
  int n_outputs;
  struct sim_global_cell **cells; /* of each output */
};

struct sim_block {
  const struct sim_launch *launch;
  int64_t number;
  /* The clock goes on whenever threads have waited for one another, and never back: what has another time than the
   * last barrier, or the beginning of the block, was before it. */
  uint32_t clock, beginning, barrier;
  /* Threads are started in the order start, start + step, ... and go on in that of the ring ready. */
  int start, step, started, ended, at_barrier, barrier_line;
  void *worker;
  uint32_t ready_begin, ready_end;
  struct sim_thread *ready[SIM_MOST_THREADS];
  /* Stacks, and those that run no thread. */
  char *stacks;
  int n_stacks, n_idle;
  void *idle[SIM_MOST_THREADS];
  /* Shared memory. */
  char *shared;
  struct sim_cell *cells;
  int64_t shared_bytes, shared_elements;
  int n_arrays;
  struct sim_array arrays[SIM_MOST_ARRAYS];
  struct sim_thread threads[SIM_MOST_THREADS];
  struct sim_warp warps[SIM_MOST_THREADS / SIM_WARP];
  int n_mbarriers, n_bulk;
  struct sim_mbarrier mbarriers[SIM_MOST_MBARRIERS];
  struct sim_bulk bulk[SIM_MOST_BULK];
  /* The products of warpgroups, where there are any. */
  struct sim_group *groups[SIM_MOST_THREADS / SIM_WARP / 4];
};

/* Reports a fault in one line, the first of all workers', and ends the program. */
SIM_RARE void sim_fail(const struct sim_block *b, const char *format, ...) {
  static int reported;
  if (__atomic_exchange_n(&reported, 1, __ATOMIC_SEQ_CST))
    for (;;) sleep(1);
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  fprintf(stderr, "gpu-sim: kernel %s, block %lld: %s\n", b->launch->kernel, (long long)b->number, text);
  fflush(stderr);
  abort();
}

SIM_STATIC const char *sim_place_name(const struct sim_block *b, const struct sim_thread *t, char *text, int bytes) {
  switch (t->place) {
    case SIM_ENDED: snprintf(text, bytes, "has ended"); break;
    case SIM_AT_BARRIER: snprintf(text, bytes, "waits at the barrier of line %d", t->line); break;
    case SIM_IN_WARP: snprintf(text, bytes, "waits at the %s of line %d", t->warp->collective, t->line); break;
    case SIM_IN_GROUP: snprintf(text, bytes, "waits at the product of line %d", t->line); break;
    default: snprintf(text, bytes, "is elsewhere");
  }
  return text;
}

SIM_STATIC void sim_check_phases(const struct sim_block *b);
SIM_STATIC void sim_check_bulk(const struct sim_block *b);

/* Reports a deadlock: some threads wait for others that never arrive. */
SIM_RARE void sim_stuck(const struct sim_block *b) {
  const struct sim_thread *waits = 0, *missing = 0;
  int threads = b->launch->threads, together = 0;
  sim_check_phases(b);
  for (int t = 0; t < threads; t++) {
    const struct sim_thread *x = &b->threads[t];
    if (x->place != SIM_ENDED && (!waits || (waits->place == SIM_AT_BARRIER && x->place != SIM_AT_BARRIER))) waits = x;
  }
  enum sim_place place = waits->place;
  int all_threads = place == SIM_AT_BARRIER ? threads : place == SIM_IN_GROUP ? 4 * SIM_WARP : SIM_WARP;
  const char *all = place == SIM_AT_BARRIER ? "block" : place == SIM_IN_GROUP ? "warpgroup" : "warp";
  for (int t = 0; t < threads; t++) {
    const struct sim_thread *x = &b->threads[t];
    if (x->number / all_threads != waits->number / all_threads) continue;
    if (x->place == waits->place && x->line == waits->line)
      together++;
    else if (!missing)
      missing = x;
  }
  char here[96], there[96];
  sim_fail(b, "divergence: thread %d %s with %d others, but thread %d of the same %s %s", waits->number,
      sim_place_name(b, waits, here, sizeof here), together - 1, missing->number, all,
      sim_place_name(b, missing, there, sizeof there));
}

SIM_STATIC void sim_fiber(struct sim_block *b);
SIM_STATIC void sim_check_products(const struct sim_thread *t);

/* Leaves a stack for another thread of the block: one that has not begun, else one that need not wait any longer.
 * When all have ended it goes back to the worker. */
SIM_STATIC void sim_leave(struct sim_block *b, void **leave) {
  void *enter;
  if (b->started < b->launch->threads)
    enter = b->n_idle ? b->idle[--b->n_idle] : sim_fresh_stack(b->stacks, b->n_stacks++, (void *)sim_fiber);
  else if (b->ready_begin != b->ready_end)
    enter = b->ready[b->ready_begin++ % SIM_MOST_THREADS]->stack_pointer;
  else if (b->ended == b->launch->threads)
    enter = b->worker;
  else
    sim_stuck(b);
  tilth_sim_switch(leave, enter, b);
}

SIM_STATIC void sim_wait(struct sim_thread *sim, enum sim_place place, int line) {
  sim->place = place, sim->line = line;
  sim_leave(sim->block, &sim->stack_pointer);
  sim->place = SIM_RUNS;
}

SIM_INLINE void sim_wake(struct sim_thread *t) { t->block->ready[t->block->ready_end++ % SIM_MOST_THREADS] = t; }

/* Runs a thread from its beginning to its end. */
SIM_STATIC void sim_run(struct sim_block *b, struct sim_thread *t) {
  t->arrays = 0;
  t->fences.n = t->products_committed = 0, t->products_fenced = 0;
  t->place = SIM_RUNS;
  b->launch->thread(t, b->launch->closure);
  sim_check_products(t);
  t->place = SIM_ENDED;
  t->copies.begin = t->copies.end = 0;
  if (++b->ended == b->launch->threads) sim_check_bulk(b);
}

/* The endless loop of each stack, which runs unstarted threads. A thread that never waits is a single call. */
SIM_STATIC void sim_fiber(struct sim_block *b) {
  const char *guard = (const char *)((uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)(SIM_STACK - 1));
  for (;;) {
    while (b->started < b->launch->threads) {
      sim_run(b, &b->threads[(b->start + (int64_t)b->started++ * b->step) % b->launch->threads]);
      if (*guard) sim_fail(b, "a thread needs more than %d bytes of stack", SIM_STACK);
    }
    sim_leave(b, &b->idle[b->n_idle++]);
  }
}

SIM_STATIC uint32_t sim_tick(struct sim_block *b) {
  if (++b->clock - b->beginning >= 1u << 22) sim_fail(b, "a block waits more than %d times", 1 << 22);
  return b->clock;
}

SIM_CALLED void sim_barrier(struct sim_thread *sim, int line) {
  struct sim_block *b = sim->block;
  int threads = b->launch->threads;
  if (b->at_barrier && b->barrier_line != line)
    sim_fail(b,
        "divergence: thread %d is at the barrier of line %d, but %d others of the block wait at that of line %d",
        sim->number, line,
             b->at_barrier, b->barrier_line);
  b->barrier_line = line;
  if (++b->at_barrier < threads) {
    sim_wait(sim, SIM_AT_BARRIER, line);
    return;
  }
  b->at_barrier = 0;
  b->barrier = sim_tick(b);
  for (int w = 0; w * SIM_WARP < threads; w++) b->warps[w].time = b->barrier;
  /* The order changes each time, so that kernels cannot depend on it. */
  for (int k = 1; k < threads; k++) sim_wake(&b->threads[(sim->number + (b->clock % 2 ? k : threads - k)) % threads]);
}

/* Whether an access of another thread of the block was before what this one does now: a barrier of the block, or of
 * the warp of both, stood between. */
SIM_INLINE int sim_is_before(const struct sim_thread *sim, int thread, uint32_t time) {
  return thread == sim->number || time < sim->block->barrier ||
         (thread / SIM_WARP == sim->number / SIM_WARP && time < sim->warp->time);
}

/* Whether what an element holds was written before what a thread does now: what bulk copies bring, if the thread has
 * waited for their phase, or a barrier stands behind its end. */
SIM_INLINE int sim_is_written_before(const struct sim_thread *sim, const struct sim_cell *c) {
  if (!sim_is_bulk(c)) return sim_is_before(sim, c->writer, c->wrote);
  return c->wrote < sim->block->barrier || sim->seen[SIM_UNFENCED - c->fences] >= c->wrote;
}

/* Whether what a thread wrote is there for instructions that read it past the threads: behind a FENCE_ASYNC, and a
 * barrier if another thread begins them. */
SIM_INLINE int sim_is_fenced(const struct sim_block *b, const struct sim_cell *c, int own) {
  const struct sim_fences *f = &b->threads[c->writer].fences;
  return c->fences < f->n && (own || f->times[c->fences] < b->barrier);
}

SIM_RARE void sim_outside(const struct sim_thread *sim, const struct sim_array *a, int64_t i, int64_t n, int line) {
  if (n > 1)
    sim_fail(sim->block, "thread %d uses elements %lld to %lld of %s, which has %d (line %d)", sim->number,
        (long long)i, (long long)(i + n - 1), a->name,
             a->elements, line);
  sim_fail(sim->block, "thread %d uses element %lld of %s, which has %d (line %d)", sim->number, (long long)i, a->name,
      a->elements, line);
}

/* Checks that n elements from i on lie in an array. */
SIM_INLINE void sim_check_bounds(const struct sim_thread *sim, const struct sim_array *a, int64_t i, int64_t n,
    int line) {
  if (__builtin_expect(i < 0 || i + n > a->elements, 0)) sim_outside(sim, a, i, n, line);
}

/* Checks that elements from i on are aligned to so many bytes. */
SIM_INLINE void sim_check_aligned(const struct sim_thread *sim, const struct sim_array *a, int64_t i, int bytes,
    int line) {
  if (__builtin_expect((uintptr_t)(a->memory + i * a->element_bytes) % (uintptr_t)bytes != 0, 0))
    sim_fail(sim->block,
        "thread %d uses %d bytes at element %lld of %s, which are not aligned to their size (line %d)", sim->number,
        bytes, (long long)i,
             a->name, line);
}
