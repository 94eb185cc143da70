/* Launches: blocks one after the other on each worker, and the threads of each in turns. */

static _Thread_local struct sim_block *sim_current;

SIM_STATIC void sim_entry(void) {
  struct sim_block *sim = sim_current;
  sim->launch->thread(sim, sim->launch->closure);
  sim_wait(sim, SIM_ENDED, 0);
}

/* Lets a thread run until it waits or ends. */
SIM_STATIC void sim_run(struct sim_block *sim, int thread) {
  sim->thread = thread;
  sim->declared_bytes = sim->declared_cells = 0;
  tilth_sim_switch(&sim->scheduler, sim->fibers[thread].stack_pointer);
}

/* Completes a collective of a warp that all of its threads wait in. */
SIM_STATIC void sim_complete(struct sim_block *sim, int first, int lanes) {
  sim_exchange(sim, first, lanes);
  sim->warp_barrier[first / SIM_WARP] = ++sim->now;
  for (int l = 0; l < lanes; l++) sim->fibers[first + l].state = SIM_RUNS;
}

SIM_RARE void sim_diverged(struct sim_block *sim, const char *what, int here, int there) {
  const struct sim_fiber *a = &sim->fibers[here], *b = &sim->fibers[there];
  sim->thread = here;
  if (b->state == SIM_ENDED)
    sim_fail(sim, "thread %d waits %s (line %d), but thread %d has ended", here, what, a->line, there);
  sim_fail(sim, "thread %d waits %s (line %d), but thread %d waits at line %d", here, what, a->line, there, b->line);
}

/* Runs the threads of a warp until all of them have ended or wait for their block. */
SIM_STATIC void sim_warp(struct sim_block *sim, int first, int lanes, int from) {
  for (;;) {
    for (int k = 0; k < lanes; k++) {
      int thread = first + (from + k) % lanes; /* in another order each time, so that nobody gets used to one */
      if (sim->fibers[thread].state == SIM_RUNS) sim_run(sim, thread);
    }
    int waiting = -1;
    for (int l = 0; l < lanes; l++)
      if (sim->fibers[first + l].state == SIM_IN_WARP) waiting = first + l;
    if (waiting < 0) return;
    for (int l = 0; l < lanes; l++) {
      const struct sim_fiber *f = &sim->fibers[first + l], *w = &sim->fibers[waiting];
      if (f->state != SIM_IN_WARP || f->line != w->line || strcmp(f->collective, w->collective) != 0)
        sim_diverged(sim, "for its warp", waiting, first + l);
    }
    sim_complete(sim, first, lanes);
  }
}

/* Runs a block. */
SIM_STATIC void sim_block_run(struct sim_block *sim, int64_t block) {
  int threads = sim->launch->threads;
  sim->block = block;
  memset(sim->cells, 0, (size_t)sim->used_cells * sizeof *sim->cells);
  sim->now = sim->barrier = 1;
  memset(sim->warp_barrier, 0, sizeof sim->warp_barrier);
  for (int t = 0; t < threads; t++) {
    sim->fibers[t].stack_pointer = sim_fresh_stack(sim->stacks + (size_t)t * SIM_STACK, sim_entry);
    sim->fibers[t].state = SIM_RUNS;
  }
  int warps = (threads + SIM_WARP - 1) / SIM_WARP;
  for (int turn = (int)(block % 7);; turn++) {
    for (int k = 0; k < warps; k++) {
      int w = turn % 2 ? warps - 1 - k : k, first = w * SIM_WARP;
      sim_warp(sim, first, threads - first < SIM_WARP ? threads - first : SIM_WARP, turn * 5);
    }
    int waiting = -1;
    for (int t = 0; t < threads; t++)
      if (sim->fibers[t].state == SIM_AT_BARRIER) waiting = t;
    if (waiting < 0) return;
    for (int t = 0; t < threads; t++) {
      if (sim->fibers[t].state != SIM_AT_BARRIER || sim->fibers[t].line != sim->fibers[waiting].line)
        sim_diverged(sim, "at a barrier of the block", waiting, t);
      sim->fibers[t].state = SIM_RUNS;
    }
    sim->barrier = ++sim->now;
  }
}

/* The body of the loop over a launch's blocks. */
SIM_STATIC void sim_blocks(void *closure, int64_t begin, int64_t end, int32_t worker) {
  (void)worker;
  const struct sim_launch *launch = closure;
  size_t cells = (size_t)SIM_SHARED_BYTES * sizeof(struct sim_cell), stacks = (size_t)launch->threads * SIM_STACK;
  struct sim_block *sim = sim_map(sizeof *sim), *outer = sim_current;
  sim->launch = launch;
  sim->shared = sim_map(SIM_SHARED_BYTES), sim->cells = sim_map(cells), sim->stacks = sim_map(stacks);
  sim_current = sim;
  for (int64_t b = begin; b < end; b++) sim_block_run(sim, b);
  sim_current = outer;
  munmap(sim->stacks, stacks), munmap(sim->cells, cells), munmap(sim->shared, SIM_SHARED_BYTES), munmap(sim, sizeof *sim);
}

/* Runs a kernel on a grid of blocks, split over the workers. */
SIM_STATIC void sim_run_launch(const struct tilth_runtime *rt, struct sim_launch *launch, int64_t blocks) {
  struct sim_global_cell *cells[launch->n_outputs + 1];
  for (int k = 0; k < launch->n_outputs; k++) cells[k] = sim_map((size_t)launch->outputs[k].elements * sizeof **cells);
  launch->cells = cells;
  rt->parallel(rt, sim_blocks, launch, blocks);
  for (int k = 0; k < launch->n_outputs; k++) munmap(cells[k], (size_t)launch->outputs[k].elements * sizeof **cells);
}
