/* What the threads of a warp do together. */

/* Takes part in a collective: gives a value and an argument, and gets what the scheduler makes of all of them. */
SIM_STATIC uint64_t sim_collective(struct sim_block *sim, const char *name, uint64_t value, int argument, int line) {
  struct sim_fiber *f = &sim->fibers[sim->thread];
  f->collective = name, f->value = value, f->argument = argument;
  sim_wait(sim, SIM_IN_WARP, line);
  return f->result;
}

/* Gives each lane what it asked for: the value of the lane in its argument, or its own where there is no such lane. */
SIM_STATIC void sim_exchange(struct sim_block *sim, int first, int lanes) {
  for (int l = 0; l < lanes; l++) {
    struct sim_fiber *f = &sim->fibers[first + l];
    f->result = f->argument >= 0 && f->argument < lanes ? sim->fibers[first + f->argument].value : f->value;
  }
}

SIM_INLINE uint32_t sim_bits(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}

SIM_INLINE float sim_float(uint32_t u) {
  float x;
  memcpy(&x, &u, 4);
  return x;
}
