/* The words of kernels, for NVIDIA's GPUs: C that clang turns into PTX, without any library. */
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
#define INT32_MIN (-__INT32_MAX__ - 1)
#define INT32_MAX __INT32_MAX__
#define INT64_MIN (-__INT64_MAX__ - 1)
#define INT64_MAX __INT64_MAX__
#define UINT64_MAX __UINT64_MAX__
#define NVPTX_JOINED(x, suffix) x##suffix
#define NVPTX_JOIN(x, suffix) NVPTX_JOINED(x, suffix)
#define INT64_C(x) NVPTX_JOIN(x, __INT64_C_SUFFIX__)
#define UINT64_C(x) NVPTX_JOIN(x, __UINT64_C_SUFFIX__)
typedef uint16_t tilth_bfloat16; /* the bits of one */

#define GLOBAL __attribute__((address_space(1)))
#define NVPTX_SHARED __attribute__((address_space(3)))
#define NVPTX_INLINE static inline __attribute__((unused, always_inline))
#define NVPTX_OVERLOADED NVPTX_INLINE __attribute__((overloadable))
#define UNROLL _Pragma("unroll")
#define UNROLL_EIGHT _Pragma("unroll 8")

/* C cannot say how many threads a block has. A remark in the PTX does, which PTX makes a bound of. */
#define TILTH_KERNEL(name, threads) \
  __asm__("// kernel " #name " has " #threads " threads"); \
  __attribute__((nvptx_kernel)) void name

#define TID ((int)__nvvm_read_ptx_sreg_tid_x())
#define BID ((int)__nvvm_read_ptx_sreg_ctaid_x())

#define V(type, n) __typeof__(type __attribute__((vector_size(sizeof(type) * (n)))))

#define NVPTX_ARRAY(a, n, shared, row, rows) \
  enum { a##_is_shared = (shared), a##_elements = (n), a##_row = (row), a##_rows = (rows) }
#define NVPTX_SWIZZLED 1024
#define GLOBAL_ARRAY(a, n) NVPTX_ARRAY(a, n, 0, 0, 0)
/* An assumption about an address would count as a use that may keep it: clang would no longer know what is only read. */
#define ALIGNED_PARAMETER __attribute__((align_value(16)))
#define GLOBAL_ALIGNED(a) ((void)0)
#define SHARED_ARRAY(type, a, n)  \
  NVPTX_ARRAY(a, n, 1, 0, 0);     \
  static NVPTX_SHARED type a[n] __attribute__((aligned(16)))
#define SWIZZLED_ARRAY(type, a, n, row, rows) \
  NVPTX_ARRAY(a, n, 1, row, rows);            \
  static NVPTX_SHARED type a[n] __attribute__((aligned(NVPTX_SWIZZLED)))

/* What the launch gives a block beside its declared arrays. */
extern NVPTX_SHARED char tilth_shared[] __attribute__((aligned(NVPTX_SWIZZLED)));
#define NVPTX_PART(type, a, offset) NVPTX_SHARED type *const a = (NVPTX_SHARED type *)(tilth_shared + (offset))
#define SHARED_PART(type, a, n, offset) \
  NVPTX_ARRAY(a, n, 1, 0, 0);           \
  NVPTX_PART(type, a, offset)
#define SWIZZLED_PART(type, a, n, row, rows, offset) \
  NVPTX_ARRAY(a, n, 1, row, rows);                   \
  NVPTX_PART(type, a, offset)

/* Where an element lies. */
#define NVPTX_AT(a, i) (a)[a##_row ? tilth_place((int)(i), sizeof *(a), a##_row, a##_rows) : (i)]
#define LOAD(a, i) (NVPTX_AT(a, i))
#define STORE(a, i, v) ((void)(NVPTX_AT(a, i) = (v)))
#define NVPTX_VECTOR(space, type, n, a, i) (*(space V(type, n) *)&NVPTX_AT(a, i))
#define LOADV(type, n, a, i) \
  __builtin_choose_expr(a##_is_shared, NVPTX_VECTOR(const NVPTX_SHARED, type, n, a, i), \
                        NVPTX_VECTOR(const GLOBAL, type, n, a, i))
#define STOREV(type, n, a, i, v) \
  ((void)(__builtin_choose_expr(a##_is_shared, NVPTX_VECTOR(NVPTX_SHARED, type, n, a, i), \
                                NVPTX_VECTOR(GLOBAL, type, n, a, i)) = (v)))

NVPTX_OVERLOADED void nvptx_add(GLOBAL float *to, float v) {
  __asm__ volatile("red.global.add.f32 [%0], %1;" ::"l"(to), "f"(v) : "memory");
}

NVPTX_OVERLOADED void nvptx_add(GLOBAL int32_t *to, int32_t v) {
  __asm__ volatile("red.global.add.s32 [%0], %1;" ::"l"(to), "r"(v) : "memory");
}

#define ATOMIC_ADD(a, i, v) nvptx_add(&(a)[i], (v))

#define BARRIER() __syncthreads()
#define WARP_BARRIER() __nvvm_bar_warp_sync(0xffffffffu)

/* A register from another lane of the warp: the mode and its bound are those of the instruction shfl. */
#define NVPTX_SHUFFLE(mode) \
  NVPTX_INLINE uint32_t nvptx_shuffle_##mode(uint32_t v, int n) { \
    uint32_t r; \
    __asm__ volatile("shfl.sync." #mode ".b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(r) : "r"(v), "r"(n)); \
    return r; \
  }
NVPTX_SHUFFLE(idx)
NVPTX_SHUFFLE(bfly)
NVPTX_SHUFFLE(down)
#define NVPTX_SHUFFLED(mode, v, n) \
  ({ \
    union { __typeof__((0, (v))) value; uint32_t bits[sizeof(v) > 4 ? 2 : 1]; } nvptx_mine = {(v)}; \
    nvptx_mine.bits[0] = nvptx_shuffle_##mode(nvptx_mine.bits[0], (n)); \
    if (sizeof(v) > 4) nvptx_mine.bits[sizeof(v) > 4] = nvptx_shuffle_##mode(nvptx_mine.bits[sizeof(v) > 4], (n)); \
    nvptx_mine.value; \
  })
#define SHUFFLE(v, from) NVPTX_SHUFFLED(idx, v, from)
#define SHUFFLE_XOR(v, mask) NVPTX_SHUFFLED(bfly, v, mask)
#define SHUFFLE_DOWN(v, n) NVPTX_SHUFFLED(down, v, n)

/* Copies through registers, whatever the type of the elements. */
typedef uint8_t __attribute__((may_alias)) nvptx_bytes_1;
typedef uint16_t __attribute__((may_alias)) nvptx_bytes_2;
typedef uint32_t __attribute__((may_alias)) nvptx_bytes_4;
typedef uint64_t __attribute__((may_alias)) nvptx_bytes_8;
typedef uint32_t __attribute__((may_alias, vector_size(16))) nvptx_bytes_16;
#define COPY(bytes, s, i, g, j, valid)                                                           \
  ((void)(*(NVPTX_SHARED nvptx_bytes_##bytes *)&NVPTX_AT(s, i) =                                  \
              (valid) ? *(const GLOBAL nvptx_bytes_##bytes *)&(g)[j] : (nvptx_bytes_##bytes){0}))
#define ALIGNED(a) ((uint64_t)(a) % 16 == 0)
#define NVPTX_ADDRESS(s, i) ((uint32_t)(uint64_t)&NVPTX_AT(s, i))
/* Copies of 16 bytes leave out the first cache, smaller ones cannot. */
#define NVPTX_COPY(cache, bytes, s, i, g, j, valid) \
  __asm__ volatile("cp.async." cache ".shared.global [%0], [%1], %2, %3;" ::"r"(NVPTX_ADDRESS(s, i)), "l"(&(g)[j]), \
                   "n"(bytes), \
                   "r"((valid) ? (bytes) : 0) : "memory")
#define COPY_ASYNC(bytes, s, i, g, j, valid)                                                       \
  do {                                                                                             \
    if ((bytes) == 16) NVPTX_COPY("cg", 16, s, i, g, j, valid);                                    \
    else NVPTX_COPY("ca", (bytes) == 8 ? 8 : 4, s, i, g, j, valid);                                \
  } while (0)
#define COPY_COMMIT() __asm__ volatile("cp.async.commit_group;" ::: "memory")
#define COPY_WAIT(n) __asm__ volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")

#define HALF(x) ((_Float16)(x))
#define FLOAT(x) ((float)(x))

/* Within two units in the last place, without the branch of C's quotient. */
NVPTX_INLINE float nvptx_ratio(float p, float q) {
  float r;
  __asm__("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(p), "f"(q));
  return r;
}
#define NVPTX_RATIO(p, q) nvptx_ratio((p), (q))

NVPTX_INLINE uint32_t nvptx_tf32(float x) {
  uint32_t r;
  __asm__("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return r;
}
#define TF32(x) nvptx_tf32(x)

NVPTX_INLINE uint32_t nvptx_tf32_rest(float x) {
  union { uint32_t bits; float value; } rounded = {nvptx_tf32(x)};
  return nvptx_tf32(x - rounded.value);
}
#define TF32_REST(x) nvptx_tf32_rest(x)

NVPTX_INLINE uint32_t nvptx_bf16x2(float low, float high) {
  uint32_t r;
  __asm__("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
#define BF16X2(low, high) nvptx_bf16x2((low), (high))

NVPTX_INLINE tilth_bfloat16 nvptx_bf16(float x) {
  tilth_bfloat16 r;
  __asm__("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x));
  return r;
}
#define BF16(x) nvptx_bf16(x)

#define NVPTX_LDMATRIX_X1(trans, r, s, i) \
  __asm__ volatile("ldmatrix.sync.aligned.m8n8.x1" trans ".shared.b16 {%0}, [%1];" \
                   : "=r"((r)[0]) : "r"(NVPTX_ADDRESS(s, i)) : "memory")
#define NVPTX_LDMATRIX_X2(trans, r, s, i) \
  __asm__ volatile("ldmatrix.sync.aligned.m8n8.x2" trans ".shared.b16 {%0, %1}, [%2];" \
                   : "=r"((r)[0]), "=r"((r)[1]) : "r"(NVPTX_ADDRESS(s, i)) : "memory")
#define NVPTX_LDMATRIX_X4(trans, r, s, i) \
  __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4" trans ".shared.b16 {%0, %1, %2, %3}, [%4];" \
                   : "=r"((r)[0]), "=r"((r)[1]), "=r"((r)[2]), "=r"((r)[3]) : "r"(NVPTX_ADDRESS(s, i)) : "memory")
#define LDMATRIX_X1(r, s, i) NVPTX_LDMATRIX_X1("", r, s, i)
#define LDMATRIX_X2(r, s, i) NVPTX_LDMATRIX_X2("", r, s, i)
#define LDMATRIX_X4(r, s, i) NVPTX_LDMATRIX_X4("", r, s, i)
#define LDMATRIX_X1_TRANS(r, s, i) NVPTX_LDMATRIX_X1(".trans", r, s, i)
#define LDMATRIX_X2_TRANS(r, s, i) NVPTX_LDMATRIX_X2(".trans", r, s, i)
#define LDMATRIX_X4_TRANS(r, s, i) NVPTX_LDMATRIX_X4(".trans", r, s, i)

#define PACK2(x, y) NVPTX_PACKED(x, y)
#define PACK4(x, y, z, w) NVPTX_PACKED(x, y, z, w)
#define NVPTX_PACKED(x, ...) \
  ({ \
    union { __typeof__((0, (x))) element[4 / sizeof(x)]; uint32_t bits; } nvptx_packed = {{(x), __VA_ARGS__}}; \
    nvptx_packed.bits; \
  })

/* The sums of the second row lie apart from those of the first. */
#define NVPTX_MMA(name, sum, constraint, shape) \
  NVPTX_INLINE void name(sum *d, int apart, const uint32_t *a, const uint32_t *b) { \
    __asm__("mma.sync.aligned." shape " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
            : constraint(d[0]), constraint(d[1]), constraint(d[apart]), constraint(d[apart + 1]) \
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); \
  }
NVPTX_MMA(MMA_M16N8K16_BF16, float, "+f", "m16n8k16.row.col.f32.bf16.bf16.f32")
NVPTX_MMA(MMA_M16N8K16_F16, float, "+f", "m16n8k16.row.col.f32.f16.f16.f32")
NVPTX_MMA(MMA_M16N8K8_TF32, float, "+f", "m16n8k8.row.col.f32.tf32.tf32.f32")
NVPTX_MMA(MMA_M16N8K32_S8, int32_t, "+r", "m16n8k32.row.col.s32.s8.s8.s32")
NVPTX_MMA(MMA_M16N8K32_U8, int32_t, "+r", "m16n8k32.row.col.s32.u8.u8.s32")
NVPTX_MMA(MMA_M16N8K32_S8_U8, int32_t, "+r", "m16n8k32.row.col.s32.s8.u8.s32")
NVPTX_MMA(MMA_M16N8K32_U8_S8, int32_t, "+r", "m16n8k32.row.col.s32.u8.s8.s32")
