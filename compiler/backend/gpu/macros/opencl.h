/* The words of kernels, in OpenCL C 1.2 for drivers whose compiler is a clang. Those for warps and for matrices are not there: OpenCL knows no
 * warps, and no device but NVIDIA's has the instructions. */
typedef char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
#define INT32_MIN INT_MIN
#define INT32_MAX INT_MAX
#define INT64_MIN LONG_MIN
#define INT64_MAX LONG_MAX
#define UINT64_MAX ULONG_MAX
#define INT64_C(x) x##L
#define UINT64_C(x) x##UL
typedef uint16_t tilth_bfloat16; /* the bits of one */
#define _Float16 ushort          /* the same of a half: few devices compute with halves */

#pragma OPENCL FP_CONTRACT OFF
#define OPENCL_INLINE static inline __attribute__((unused, always_inline))
#define OPENCL_OVERLOADED OPENCL_INLINE __attribute__((overloadable))
/* A driver has a library. Where kernels are compiled without one, for AMD's GPUs, clang knows the instructions. */
#ifndef __AMDGCN__
#define __builtin_rint(x) rint((double)(x))
#define __builtin_rintf(x) rint((float)(x))
#define __builtin_floor(x) floor((double)(x))
#define __builtin_floorf(x) floor((float)(x))
#define __builtin_ceil(x) ceil((double)(x))
#define __builtin_ceilf(x) ceil((float)(x))
#define __builtin_fabs(x) fabs((double)(x))
#define __builtin_fabsf(x) fabs((float)(x))
#define __builtin_sqrt(x) sqrt((double)(x))
#define __builtin_sqrtf(x) sqrt((float)(x))
#define __builtin_fmaf(x, y, z) fma((float)(x), (float)(y), (float)(z))
#define __builtin_fma(x, y, z) fma((double)(x), (double)(y), (double)(z))
#define __builtin_copysign(x, y) copysign((double)(x), (double)(y))
#endif
#define __builtin_isnan(x) isnan(x)
#define __builtin_isinf(x) isinf(x)
#define __builtin_nanf(text) nan(0u)
#define __builtin_nan(text) nan(0ul)

#define GLOBAL __global
#define UNROLL _Pragma("unroll")
#define UNROLL_EIGHT _Pragma("unroll 8")
#define TILTH_KERNEL(name, threads) __kernel __attribute__((reqd_work_group_size(threads, 1, 1))) void name

#define TID ((int)get_local_id(0))
#define BID ((int)get_group_id(0))

#define V(type, n) __typeof__(type __attribute__((vector_size(sizeof(type) * (n)))))

/* Bytes that are moved at once, whatever they are, and as many zeros. */
typedef uint8_t __attribute__((may_alias)) opencl_bytes_1;
typedef uint16_t __attribute__((may_alias)) opencl_bytes_2;
typedef uint32_t __attribute__((may_alias)) opencl_bytes_4;
typedef uint64_t __attribute__((may_alias)) opencl_bytes_8;
typedef uint32_t __attribute__((may_alias, vector_size(16))) opencl_bytes_16;
#define OPENCL_ZEROS_1 {0}
#define OPENCL_ZEROS_2 {0}
#define OPENCL_ZEROS_4 {0}
#define OPENCL_ZEROS_8 {0}
#define OPENCL_ZEROS_16 {0, 0, 0, 0}

/* The same in the memory that an array lies in. */
#define OPENCL_ARRAY(memory, a, n)                                   \
  enum { a##_elements = (n) };                                       \
  typedef memory opencl_bytes_1 a##_bytes_1 __attribute__((unused)); \
  typedef memory opencl_bytes_2 a##_bytes_2 __attribute__((unused)); \
  typedef memory opencl_bytes_4 a##_bytes_4 __attribute__((unused)); \
  typedef memory opencl_bytes_8 a##_bytes_8 __attribute__((unused)); \
  typedef memory opencl_bytes_16 a##_bytes_16 __attribute__((unused))
/* Memory that was allocated as one is no pointer: a kernel gets it with the place of its array there, in bytes. */
#define OPENCL_PARAMETER(a) a##_memory, const ulong a##_offset
#define GLOBAL_ARRAY(a, n)      \
  OPENCL_ARRAY(__global, a, n); \
  __typeof__(a##_memory) a = (__typeof__(a##_memory))((__global char *)a##_memory + a##_offset)
#define ALIGNED_PARAMETER
#define GLOBAL_ALIGNED(a) ((void)0)
#define SHARED_ARRAY(type, a, n) \
  OPENCL_ARRAY(__local, a, n);   \
  __local type a[n] __attribute__((aligned(16)))
/* A kernel may declare all that a block has. */
#define SHARED_PART(type, a, n, offset) SHARED_ARRAY(type, a, n)

#define LOAD(a, i) ((a)[i])
#define STORE(a, i, v) ((void)((a)[i] = (v)))
#define OPENCL_VECTOR(type, n) \
  union { V(type, n) value; opencl_bytes_2 b2; opencl_bytes_4 b4; opencl_bytes_8 b8; opencl_bytes_16 b16; }
#define LOADV(type, n, a, i)                                                                \
  ({                                                                                        \
    OPENCL_VECTOR(type, n) opencl_loaded;                                                   \
    if (sizeof(type) * (n) == 16) opencl_loaded.b16 = *(const a##_bytes_16 *)&(a)[i];       \
    else if (sizeof(type) * (n) == 8) opencl_loaded.b8 = *(const a##_bytes_8 *)&(a)[i];     \
    else if (sizeof(type) * (n) == 4) opencl_loaded.b4 = *(const a##_bytes_4 *)&(a)[i];     \
    else opencl_loaded.b2 = *(const a##_bytes_2 *)&(a)[i];                                  \
    opencl_loaded.value;                                                                    \
  })
#define STOREV(type, n, a, i, v)                                                            \
  do {                                                                                      \
    OPENCL_VECTOR(type, n) opencl_stored = {(v)};                                           \
    if (sizeof(type) * (n) == 16) *(a##_bytes_16 *)&(a)[i] = opencl_stored.b16;             \
    else if (sizeof(type) * (n) == 8) *(a##_bytes_8 *)&(a)[i] = opencl_stored.b8;           \
    else if (sizeof(type) * (n) == 4) *(a##_bytes_4 *)&(a)[i] = opencl_stored.b4;           \
    else *(a##_bytes_2 *)&(a)[i] = opencl_stored.b2;                                        \
  } while (0)

OPENCL_OVERLOADED void opencl_add(__global int32_t *to, int32_t v) { atomic_add(to, v); }

/* OpenCL adds integers alone. */
OPENCL_OVERLOADED void opencl_add(__global float *to, float v) {
  volatile __global uint32_t *bits = (volatile __global uint32_t *)to;
  uint32_t before = *bits, seen;
  while ((seen = atomic_cmpxchg(bits, before, as_uint(as_float(before) + v))) != before) before = seen;
}

#define ATOMIC_ADD(a, i, v) opencl_add(&(a)[i], (v))

#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

/* Copies through registers. */
#define COPY(bytes, s, i, g, j, valid)                                                      \
  do {                                                                                      \
    opencl_bytes_##bytes opencl_copied = OPENCL_ZEROS_##bytes;                       \
    if (valid) opencl_copied = *(const g##_bytes_##bytes *)&(g)[j];                         \
    *(s##_bytes_##bytes *)&(s)[i] = opencl_copied;                                          \
  } while (0)
#define ALIGNED(a) ((size_t)(a) % 16 == 0)
/* Such copies are there before they are waited for. */
#define COPY_ASYNC(bytes, s, i, g, j, valid) COPY(bytes, s, i, g, j, valid)
#define COPY_COMMIT() ((void)0)
#define COPY_WAIT(n) ((void)0)

OPENCL_INLINE float opencl_float(uint16_t bits) { return vload_half(0, (const half *)&bits); }
OPENCL_INLINE uint16_t opencl_half(float x) {
  uint16_t bits;
  vstore_half_rte(x, 0, (half *)&bits);
  return bits;
}
#define FLOAT(x) opencl_float(x)
#define HALF(x) opencl_half(x)

OPENCL_INLINE tilth_bfloat16 opencl_bf16(float x) {
  uint32_t bits = as_uint(x);
  return isnan(x) ? (tilth_bfloat16)(bits >> 16 | 0x40) : (tilth_bfloat16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
#define BF16(x) opencl_bf16(x)
