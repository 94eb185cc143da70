/* The words of kernels. */
#define GLOBAL
#define UNROLL
#define TILTH_KERNEL(name, threads) static __attribute__((unused)) void name SIM_PARAMETERS
#define SIM_PARAMETERS(...) (struct sim_block *const sim, __VA_ARGS__)

#define TID (sim->thread)
#define BID ((int)sim->block)

#define GLOBAL_ARRAY(a, n)                                                               \
  struct sim_global_cell *const a##_cells = sim_cells_of(sim, a);                        \
  enum { a##_elements = (n), a##_is_shared = 0 };                                        \
  (void)a##_cells
#define SHARED_ARRAY(type, a, n)                                                         \
  struct sim_cell *a##_cells;                                                            \
  enum { a##_elements = (n), a##_is_shared = 1 };                                        \
  type *const a = sim_declare(sim, (int64_t)sizeof(type) * (n), (n), &a##_cells)

#define LOAD(a, i)                                                                                                          \
  ((a)[a##_is_shared ? sim_shared_read(sim, #a, (struct sim_cell *)a##_cells, (i), a##_elements, __LINE__)                  \
                     : sim_global_read(sim, #a, (struct sim_global_cell *)a##_cells, (i), a##_elements, __LINE__)])
#define STORE(a, i, v)                                                                                                      \
  ((a)[a##_is_shared ? sim_shared_write(sim, #a, (struct sim_cell *)a##_cells, (i), a##_elements, __LINE__)                 \
                     : sim_global_write(sim, #a, (struct sim_global_cell *)a##_cells, (i), a##_elements, __LINE__)] = (v))

#define BARRIER() sim_wait(sim, SIM_AT_BARRIER, __LINE__)
#define WARP_BARRIER() ((void)sim_collective(sim, "barrier", 0, -1, __LINE__))
#define SHUFFLE(v, lane) sim_float((uint32_t)sim_collective(sim, "shuffle", sim_bits(v), (lane), __LINE__))
#define SHUFFLE_XOR(v, mask) SHUFFLE(v, (sim->thread % SIM_WARP) ^ (mask))
#define SHUFFLE_DOWN(v, n) SHUFFLE(v, (sim->thread % SIM_WARP) + (n))
