/* What the lanes of a warp do together. Only a barrier orders their accesses of memory. */

/* Takes part in a collective, which the last lane to come does for all. */
SIM_CALLED void sim_collective(struct sim_thread *sim, const char *name,
    void (*all)(struct sim_thread *first, struct sim_warp *w), struct sim_lane lane,
                               int line) {
  struct sim_warp *w = sim->warp;
  if (all && w->lanes < SIM_WARP)
    sim_fail(sim->block, "the %s of line %d needs a whole warp, and that of thread %d has %d lanes", name, line,
        sim->number, w->lanes);
  if (w->arrived && (w->line != line || strcmp(w->collective, name) != 0))
    sim_fail(sim->block,
        "divergence: thread %d is at the %s of line %d, but %d others of the warp wait at the %s of line %d",
        sim->number, name, line,
             w->arrived, w->collective, w->line);
  w->collective = name, w->line = line;
  w->lane[sim->lane] = lane;
  if (++w->arrived < w->lanes) {
    sim_wait(sim, SIM_IN_WARP, line);
    return;
  }
  w->arrived = 0;
  struct sim_thread *first = sim - sim->lane;
  if (all)
    all(first, w);
  else
    w->time = sim_tick(sim->block);
  for (int k = 1; k < w->lanes; k++) sim_wake(first + (sim->lane + k) % w->lanes);
}

/* Gives each lane the value of the lane in its argument. */
SIM_STATIC void sim_exchange(struct sim_thread *first, struct sim_warp *w) {
  uint64_t values[SIM_WARP];
  for (int l = 0; l < SIM_WARP; l++) memcpy(&values[l], w->lane[l].a, sizeof values[l]);
  for (int l = 0; l < SIM_WARP; l++) {
    int64_t from = w->lane[l].argument;
    if (from < 0 || from >= SIM_WARP)
      sim_fail(first->block, "thread %d wants the value of lane %lld of its warp (line %d)", first[l].number,
          (long long)from, w->line);
    memcpy(w->lane[l].result, &values[from], sizeof values[l]);
  }
}

SIM_STATIC uint64_t sim_shuffle(struct sim_thread *sim, uint64_t value, int64_t from, int line) {
  uint64_t result;
  struct sim_lane lane = {.a = &value, .result = &result, .argument = from};
  sim_collective(sim, "shuffle", sim_exchange, lane, line);
  return result;
}

/* The lane n after a thread's, or its own if that is outside the warp. */
SIM_INLINE int64_t sim_lane_below(const struct sim_thread *sim, int64_t n) {
  return sim->lane + n < SIM_WARP ? sim->lane + n : sim->lane;
}
