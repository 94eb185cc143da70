/* The words of kernels. */
typedef uint16_t tilth_bfloat16; /* the bits of one */

#define GLOBAL
#define UNROLL
#define UNROLL_EIGHT
#define TILTH_KERNEL(name, threads) static __attribute__((unused)) void name SIM_PARAMETERS
#define SIM_PARAMETERS(...) (struct sim_thread *const sim, __VA_ARGS__)

#define TID (sim->number)
#define BID ((int)sim->block->number)

/* A vector of neighbours; its lanes are v[k]. */
#define V(type, n) __typeof__(type __attribute__((vector_size(sizeof(type) * (n)))))

#define GLOBAL_ARRAY(a, n)                                                                      \
  enum { a##_is_shared = 0 };                                                                   \
  const struct sim_array a##_global = sim_declare_global(sim, #a, a, (n), sizeof *(a));         \
  const struct sim_array *const a##_array __attribute__((unused)) = &a##_global
#define ALIGNED_PARAMETER
#define GLOBAL_ALIGNED(a) sim_check_aligned(sim, a##_array, 0, 16, __LINE__)
#define SHARED_ARRAY(type, a, n)                                                                \
  enum { a##_is_shared = 1 };                                                                   \
  const struct sim_array *const a##_array = sim_declare_shared(sim, #a, (n), sizeof(type));     \
  type *const a __attribute__((unused)) = (type *)a##_array->memory

#define SHARED_PART(type, a, n, offset) SHARED_ARRAY(type, a, n)

#define SWIZZLED_ARRAY(type, a, n, row, rows)                                                                  \
  enum { a##_is_shared = 1 };                                                                                  \
  const struct sim_array *const a##_array = sim_declare_matrices(sim, #a, (n), sizeof(type), (row), (rows));   \
  type *const a __attribute__((unused)) = (type *)a##_array->memory
#define SWIZZLED_PART(type, a, n, row, rows, offset) SWIZZLED_ARRAY(type, a, n, row, rows)

#define SIM_READ(a, i, n) \
  (a##_is_shared ? sim_read_shared(sim, a##_array, (i), (n), __LINE__) \
                 : sim_read_global(sim, a##_array, (i), (n), __LINE__))
#define SIM_WRITE(a, i, n) \
  (a##_is_shared ? sim_write_shared(sim, a##_array, (i), (n), __LINE__) \
                 : sim_write_global(sim, a##_array, (i), (n), 0, __LINE__))

#define LOAD(a, i) ((a)[SIM_READ(a, i, 1)])
#define STORE(a, i, v)                        \
  do {                                        \
    __typeof__(*(a)) sim_stored = (v);        \
    sim_check_stored(sim, &sim_stored, sizeof sim_stored, __LINE__); \
    (a)[SIM_WRITE(a, i, 1)] = sim_stored;     \
  } while (0)
#define LOADV(type, n, a, i)                                                                             \
  ({                                                                                                     \
    _Static_assert(sizeof(type) == sizeof *(a) && sizeof(type) * (n) <= 16, "elements of the array, 16 bytes"); \
    V(type, n) sim_loaded;                                                                               \
    int64_t sim_place = SIM_READ(a, i, n);                                                               \
    sim_check_aligned(sim, a##_array, sim_place, sizeof sim_loaded, __LINE__);                           \
    memcpy(&sim_loaded, (a) + sim_place, sizeof sim_loaded);                                             \
    sim_loaded;                                                                                          \
  })
#define STOREV(type, n, a, i, v)                                                                         \
  do {                                                                                                   \
    _Static_assert(sizeof(type) == sizeof *(a) && sizeof(type) * (n) <= 16, "elements of the array, 16 bytes"); \
    V(type, n) sim_stored = (v);                                                                         \
    int64_t sim_place = SIM_WRITE(a, i, n);                                                              \
    sim_check_aligned(sim, a##_array, sim_place, sizeof sim_stored, __LINE__);                           \
    memcpy((a) + sim_place, &sim_stored, sizeof sim_stored);                                             \
  } while (0)
#define ATOMIC_ADD(a, i, v) \
  _Generic((a), float *: sim_add_float, int32_t *: sim_add_int) \
  ((a) + sim_write_global(sim, a##_array, (i), 1, 1, __LINE__), (v))

#define BARRIER() sim_barrier(sim, __LINE__)
#define WARP_BARRIER() sim_collective(sim, "warp's barrier", 0, (struct sim_lane){0}, __LINE__)
#define SHUFFLE(v, from)                                                  \
  ({                                                                      \
    __typeof__((0, (v))) sim_mine = (v);                                  \
    uint64_t sim_bits = 0;                                                \
    memcpy(&sim_bits, &sim_mine, sizeof sim_mine);                        \
    sim_bits = sim_shuffle(sim, sim_bits, (from), __LINE__);              \
    memcpy(&sim_mine, &sim_bits, sizeof sim_mine);                        \
    sim_mine;                                                             \
  })
#define SHUFFLE_XOR(v, mask) SHUFFLE(v, sim->lane ^ (mask))
#define SHUFFLE_DOWN(v, n) SHUFFLE(v, sim_lane_below(sim, (n)))

#define ALIGNED(a) ((uintptr_t)(a) % 16 == 0)
#define COPY(bytes, s, i, g, j, valid)                                        \
  do {                                                                        \
    enum { sim_elements = (bytes) / sizeof *(s) };                            \
    int64_t sim_to = SIM_WRITE(s, i, sim_elements);                           \
    sim_check_aligned(sim, s##_array, sim_to, (bytes), __LINE__);             \
    if (valid) {                                                              \
      int64_t sim_from = SIM_READ(g, j, sim_elements);                        \
      sim_check_aligned(sim, g##_array, sim_from, (bytes), __LINE__);         \
      memcpy((s) + sim_to, (g) + sim_from, (bytes));                          \
    } else {                                                                  \
      memset((s) + sim_to, 0, (bytes));                                       \
    }                                                                         \
  } while (0)
#define COPY_ASYNC(bytes, s, i, g, j, valid) \
  do { \
    _Static_assert(((bytes) == 4 || (bytes) == 8 || (bytes) == 16) && sizeof *(s) == sizeof *(g), \
                   "4, 8 or 16 bytes of like elements"); \
    sim_copy(sim, (bytes), s##_array, (i), g##_array, (j), (valid), __LINE__); \
  } while (0)
#define COPY_COMMIT() ((void)sim->copies.committed++)
#define COPY_WAIT(n) sim_wait_for_copies(sim, (n))

#define SIM_LDMATRIX(name, all, r, s, i) \
  sim_collective(sim, name, all, (struct sim_lane){.a = s##_array, .result = (r), .argument = (i)}, __LINE__)
#define LDMATRIX_X1(r, s, i) SIM_LDMATRIX("LDMATRIX_X1", sim_ldmatrix_x1, r, s, i)
#define LDMATRIX_X2(r, s, i) SIM_LDMATRIX("LDMATRIX_X2", sim_ldmatrix_x2, r, s, i)
#define LDMATRIX_X4(r, s, i) SIM_LDMATRIX("LDMATRIX_X4", sim_ldmatrix_x4, r, s, i)
#define LDMATRIX_X1_TRANS(r, s, i) SIM_LDMATRIX("LDMATRIX_X1_TRANS", sim_ldmatrix_x1_trans, r, s, i)
#define LDMATRIX_X2_TRANS(r, s, i) SIM_LDMATRIX("LDMATRIX_X2_TRANS", sim_ldmatrix_x2_trans, r, s, i)
#define LDMATRIX_X4_TRANS(r, s, i) SIM_LDMATRIX("LDMATRIX_X4_TRANS", sim_ldmatrix_x4_trans, r, s, i)

#define SIM_PRODUCT(all, d, apart, a_, b_) \
  sim_collective(sim, "product", all, \
                 (struct sim_lane){.a = (a_), .b = (b_), .result = (d), .argument = (apart)}, __LINE__)
#define MMA_M16N8K16_BF16(d, apart, a, b) SIM_PRODUCT(sim_mma_m16n8k16_bf16, d, apart, a, b)
#define MMA_M16N8K16_F16(d, apart, a, b) SIM_PRODUCT(sim_mma_m16n8k16_f16, d, apart, a, b)
#define MMA_M16N8K8_TF32(d, apart, a, b) SIM_PRODUCT(sim_mma_m16n8k8_tf32, d, apart, a, b)
#define MMA_M16N8K32_S8(d, apart, a, b) SIM_PRODUCT(sim_mma_m16n8k32_s8, d, apart, a, b)
#define MMA_M16N8K32_U8(d, apart, a, b) SIM_PRODUCT(sim_mma_m16n8k32_u8, d, apart, a, b)
#define MMA_M16N8K32_S8_U8(d, apart, a, b) SIM_PRODUCT(sim_mma_m16n8k32_s8_u8, d, apart, a, b)
#define MMA_M16N8K32_U8_S8(d, apart, a, b) SIM_PRODUCT(sim_mma_m16n8k32_u8_s8, d, apart, a, b)
#define PACK2(x, y) SIM_PACKED(x, y)
#define PACK4(x, y, z, w) SIM_PACKED(x, y, z, w)
#define SIM_PACKED(x, ...)                                                                          \
  ({                                                                                                \
    union { __typeof__((0, (x))) element[4 / sizeof(x)]; uint32_t bits; } sim_packed = {{(x), __VA_ARGS__}}; \
    sim_packed.bits;                                                                                \
  })
#define HALF(x) ((_Float16)(x))
#define FLOAT(x) ((float)(x))
#define TF32(x) sim_round_tf32(x)
#define TF32_REST(x) sim_tf32_rest(x)
#define BF16(x) ((tilth_bfloat16)sim_round_bf16(x))
#define BF16X2(low, high) (sim_round_bf16(low) | sim_round_bf16(high) << 16)

#define FENCE_ASYNC() sim_fence_async(sim)
#define MBARRIER_INIT(m, i, arrivals) sim_init_mbarrier(sim, m##_array, (i), (arrivals), __LINE__)
#define MBARRIER_INVALIDATE(m, i) sim_invalidate_mbarrier(sim, m##_array, (i), __LINE__)
#define MBARRIER_EXPECT(m, i, bytes) sim_expect(sim, m##_array, (i), (bytes), __LINE__)
#define MBARRIER_WAIT(m, i, parity) sim_wait_for_phase(sim, m##_array, (i), (parity), __LINE__)
#define COPY_BULK(bytes, s, i, g, j, m, k) \
  do { \
    _Static_assert(sizeof *(s) == sizeof *(g), "like elements"); \
    sim_copy_bulk(sim, (bytes), s##_array, (i), g##_array, (j), m##_array, (k), __LINE__); \
  } while (0)
#define TENSOR_MAP const struct sim_map
#define TENSOR_MAP_OF(m, a, kernel, k)                                                          \
  const struct sim_array *const m##_array __attribute__((unused)) = a##_array;                  \
  sim_check_map(sim, #m, &(m), a##_array, __LINE__)
#define SIM_COPY_TENSOR(s, i, m, mbarriers, k, ...)                                             \
  sim_copy_tensor(sim, s##_array, (i), &(m), m##_array, sizeof((int[]){__VA_ARGS__}) / sizeof(int), \
                  (int[]){__VA_ARGS__}, mbarriers##_array, (k), __LINE__)
#define COPY_TENSOR_2D(s, i, m, x, y, mbarriers, k) SIM_COPY_TENSOR(s, i, m, mbarriers, k, x, y)
#define COPY_TENSOR_3D(s, i, m, x, y, z, mbarriers, k) SIM_COPY_TENSOR(s, i, m, mbarriers, k, x, y, z)
#define COPY_TENSOR_4D(s, i, m, x, y, z, u, mbarriers, k) SIM_COPY_TENSOR(s, i, m, mbarriers, k, x, y, z, u)
#define COPY_TENSOR_5D(s, i, m, x, y, z, u, v, mbarriers, k) SIM_COPY_TENSOR(s, i, m, mbarriers, k, x, y, z, u, v)
#define WGMMA_FENCE(d, n) ((void)(d), sim->products_fenced = 1)
#define WGMMA(n, type, d, apart, a, i, a_turned, b, j, b_turned) \
  sim_multiply(sim, &sim_wgmma_##n##_##type, (n), (d), (apart), (struct sim_matrix){a##_array, (i), (a_turned)}, \
               (struct sim_matrix){b##_array, (j), (b_turned)}, __LINE__)
#define WGMMA_COMMIT() sim_commit_products(sim)
#define WGMMA_WAIT(n) sim_wait_for_products(sim, (n))
#define WGMMA_WAIT_ALL(d, n) ((void)(d), sim_wait_for_products(sim, 0))
