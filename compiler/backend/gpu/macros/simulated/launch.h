/* Launches: a grid of blocks, split over the workers. */

SIM_STATIC void sim_run_block(struct sim_block *b, int64_t number) {
  int threads = b->launch->threads;
  if (b->clock >= 1u << 31) {
    memset(b->cells, 0, (size_t)b->shared_elements * sizeof *b->cells);
    b->clock = 0;
    for (int t = 0; t < threads; t++) memset(b->threads[t].seen, 0, sizeof b->threads[t].seen);
  }
  b->number = number;
  b->beginning = b->barrier = ++b->clock;
  for (int w = 0; w * SIM_WARP < threads; w++) b->warps[w].time = b->clock;
  /* The order differs between blocks, so that kernels cannot depend on it. */
  b->start = (int)(number * 37 % threads), b->step = number % 2 ? threads - 1 : 1;
  b->started = b->ended = b->n_mbarriers = 0;
  sim_leave(b, &b->worker);
}

/* The body of the loop over a launch's blocks. */
SIM_STATIC void sim_blocks(void *closure, int64_t begin, int64_t end, int32_t worker) {
  (void)worker;
  const struct sim_launch *launch = closure;
  int threads = launch->threads;
  size_t cells = (size_t)SIM_SHARED_BYTES * sizeof(struct sim_cell), stacks = (size_t)(threads + 1) * SIM_STACK;
  struct sim_block *b = sim_map(sizeof *b);
  b->launch = launch;
  if (threads < 1 || threads > SIM_MOST_THREADS || end > SIM_MOST_BLOCKS)
    sim_fail(b, "a launch has %d threads a block, and %lld blocks or more", threads, (long long)end);
  char *region = sim_map(stacks);
  b->shared = sim_map(SIM_SHARED_BYTES), b->cells = sim_map(cells);
  b->stacks = (char *)(((uintptr_t)region + SIM_STACK - 1) & ~(uintptr_t)(SIM_STACK - 1));
  for (int t = 0; t < threads; t++) {
    struct sim_warp *w = &b->warps[t / SIM_WARP];
    w->lanes++;
    b->threads[t].block = b, b->threads[t].warp = w, b->threads[t].number = t, b->threads[t].lane = t % SIM_WARP;
  }
  for (int64_t k = begin; k < end; k++) sim_run_block(b, k);
  for (int t = 0; t < threads; t++) free(b->threads[t].copies.list), free(b->threads[t].fences.times);
  for (int g = 0; g * SIM_GROUP < threads; g++) free(b->groups[g]);
  munmap(region, stacks), munmap(b->cells, cells), munmap(b->shared, SIM_SHARED_BYTES), munmap(b, sizeof *b);
}

/* Runs a kernel on a grid of blocks. */
SIM_STATIC void sim_run_launch(const struct tilth_runtime *rt, struct sim_launch *launch, int64_t blocks) {
  struct sim_global_cell *cells[launch->n_outputs + 1];
  for (int k = 0; k < launch->n_outputs; k++) cells[k] = sim_map((size_t)launch->outputs[k].elements * sizeof **cells);
  launch->cells = cells;
  rt->parallel(rt, sim_blocks, launch, blocks);
  for (int k = 0; k < launch->n_outputs; k++) munmap(cells[k], (size_t)launch->outputs[k].elements * sizeof **cells);
}
