/* A block of threads on one worker. */
enum { SIM_MOST_THREADS = 1024, SIM_WARP = 32, SIM_SHARED_BYTES = 256 << 10 };

enum sim_state { SIM_RUNS, SIM_ENDED, SIM_AT_BARRIER, SIM_IN_WARP };

struct sim_fiber {
  void *stack_pointer;
  enum sim_state state;
  /* Where it waits, and for which collective of its warp. */
  int line;
  const char *collective;
  /* What it gives to a collective, and gets back; how. */
  uint64_t value, result;
  int argument;
};

struct sim_launch;

struct sim_block {
  const struct sim_launch *launch;
  int64_t block;
  /* The thread that runs. */
  int thread;
  void *scheduler;
  /* The time goes on with each barrier of the block or of a warp; these are the last ones. */
  uint32_t now, barrier, warp_barrier[SIM_MOST_THREADS / SIM_WARP];
  /* Shared memory, with a cell for each element; what this thread has declared of it so far, and all of them. */
  char *shared;
  struct sim_cell *cells;
  int64_t declared_bytes, declared_cells, used_bytes, used_cells;
  char *stacks;
  struct sim_fiber fibers[SIM_MOST_THREADS];
};

struct sim_launch {
  const char *kernel;
  void (*thread)(struct sim_block *sim, void *closure);
  void *closure;
  int threads;
  const struct sim_output *outputs;
  int n_outputs;
  struct sim_global_cell **cells;
};

SIM_RARE void sim_fail(const struct sim_block *sim, const char *format, ...) {
  fprintf(stderr, "gpu-sim: kernel %s, block %lld: ", sim->launch->kernel, (long long)sim->block);
  va_list args;
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
  fflush(stderr);
  abort();
}

/* Goes from a thread to the scheduler, until it is its turn again. */
SIM_STATIC void sim_wait(struct sim_block *sim, enum sim_state state, int line) {
  struct sim_fiber *f = &sim->fibers[sim->thread];
  f->state = state, f->line = line;
  tilth_sim_switch(&f->stack_pointer, sim->scheduler);
}
