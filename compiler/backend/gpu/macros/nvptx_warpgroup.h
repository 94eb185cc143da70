/* The words of bulk copies and of warpgroups, four warps each, for sm_90a of NVIDIA's GPUs. */

/* Accesses of shared memory by threads, before those of instructions that read it past them. */
#define FENCE_ASYNC() __asm__ volatile("fence.proxy.async.shared::cta;" ::: "memory")

#define MBARRIER_INIT(m, i, arrivals) \
  __asm__ volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(NVPTX_ADDRESS(m, i)), "r"(arrivals) : "memory")
#define MBARRIER_INVALIDATE(m, i) \
  __asm__ volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(NVPTX_ADDRESS(m, i)) : "memory")
#define MBARRIER_EXPECT(m, i, bytes)                                                                              \
  __asm__ volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(NVPTX_ADDRESS(m, i)), "r"(bytes) \
                   : "memory")
/* The instruction gives up after a while: it must be tried until it says yes. */
#define MBARRIER_WAIT(m, i, parity)                                                       \
  __asm__ volatile(                                                                       \
      "{\n.reg .pred over;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n" \
      "@over bra OVER;\nbra AGAIN;\nOVER:\n}" ::"r"(NVPTX_ADDRESS(m, i)), "r"(parity) : "memory")
#define COPY_BULK(bytes, s, i, g, j, m, k)                                                                            \
  __asm__ volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(   \
                       NVPTX_ADDRESS(s, i)), "l"(&(g)[j]), "r"(bytes), "r"(NVPTX_ADDRESS(m, k)) : "memory")

/* A tensor map is a parameter, which copies find where the launch has put it. Of a variable, clang would make a copy in
 * the thread's memory: its address is that of the parameter by the name that PTX gives it. */
struct nvptx_map {
  char bytes[128];
} __attribute__((aligned(64)));
#define TENSOR_MAP const struct nvptx_map
#define TENSOR_MAP_OF(m, a, kernel, k)                                                                          \
  uint64_t m##_address __attribute__((unused));                                                                \
  __asm__("{\n.reg .b64 map;\nmov.b64 map, " #kernel "_param_" #k ";\ncvta.param.u64 %0, map;\n}" : "=l"(m##_address))
#define NVPTX_COPY_TENSOR(shape, names, s, i, m, mbarriers, k, ...)                                               \
  __asm__ volatile("cp.async.bulk.tensor." shape ".shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {" \
                   names "}], [%2];" ::"r"(NVPTX_ADDRESS(s, i)), "l"(m##_address), "r"(NVPTX_ADDRESS(mbarriers, k)),  \
                   __VA_ARGS__ : "memory")
#define COPY_TENSOR_2D(s, i, m, x, y, mbarriers, k) \
  NVPTX_COPY_TENSOR("2d", "%3, %4", s, i, m, mbarriers, k, "r"(x), "r"(y))
#define COPY_TENSOR_3D(s, i, m, x, y, z, mbarriers, k) \
  NVPTX_COPY_TENSOR("3d", "%3, %4, %5", s, i, m, mbarriers, k, "r"(x), "r"(y), "r"(z))
#define COPY_TENSOR_4D(s, i, m, x, y, z, u, mbarriers, k) \
  NVPTX_COPY_TENSOR("4d", "%3, %4, %5, %6", s, i, m, mbarriers, k, "r"(x), "r"(y), "r"(z), "r"(u))
#define COPY_TENSOR_5D(s, i, m, x, y, z, u, v, mbarriers, k) \
  NVPTX_COPY_TENSOR("5d", "%3, %4, %5, %6, %7", s, i, m, mbarriers, k, "r"(x), "r"(y), "r"(z), "r"(u), "r"(v))

/* Sums stay in their registers here: a compiler must move none of their uses across. */
NVPTX_OVERLOADED void nvptx_keep(float *d, int n) {
  UNROLL
  for (int k = 0; k < n; k++) __asm__ volatile("" : "+f"(d[k])::"memory");
}

NVPTX_OVERLOADED void nvptx_keep(int32_t *d, int n) {
  UNROLL
  for (int k = 0; k < n; k++) __asm__ volatile("" : "+r"(d[k])::"memory");
}

#define WGMMA_FENCE(d, n)                                           \
  do {                                                              \
    nvptx_keep(d, n);                                               \
    __asm__ volatile("wgmma.fence.sync.aligned;" ::: "memory");     \
  } while (0)
#define WGMMA_COMMIT() __asm__ volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WGMMA_WAIT(n) __asm__ volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory")
#define WGMMA_WAIT_ALL(d, n) \
  do {                       \
    WGMMA_WAIT(0);           \
    nvptx_keep(d, n);        \
  } while (0)

/* The registers of so many columns: four for each eight of them, two of either row. The sums of the second row lie
 * apart from those of the first. */
#define NVPTX_TWO(c, d, k) c((d)[k]), c((d)[(k) + 1])
#define NVPTX_SUMS_8(c, d, apart, j) NVPTX_TWO(c, d, 2 * (j)), NVPTX_TWO(c, d, (apart) + 2 * (j))
#define NVPTX_SUMS_16(c, d, apart, j) NVPTX_SUMS_8(c, d, apart, j), NVPTX_SUMS_8(c, d, apart, (j) + 1)
#define NVPTX_SUMS_32(c, d, apart, j) NVPTX_SUMS_16(c, d, apart, j), NVPTX_SUMS_16(c, d, apart, (j) + 2)
#define NVPTX_SUMS_64(c, d, apart, j) NVPTX_SUMS_32(c, d, apart, j), NVPTX_SUMS_32(c, d, apart, (j) + 4)
#define NVPTX_SUMS_128(c, d, apart, j) NVPTX_SUMS_64(c, d, apart, j), NVPTX_SUMS_64(c, d, apart, (j) + 8)
#define NVPTX_SUMS_256(c, d, apart, j) NVPTX_SUMS_128(c, d, apart, j), NVPTX_SUMS_128(c, d, apart, (j) + 16)
#define NVPTX_NAMES_16 "%0, %1, %2, %3, %4, %5, %6, %7"
#define NVPTX_NAMES_32 NVPTX_NAMES_16 ", " \
  "%8, %9, %10, %11, %12, %13, %14, %15"
#define NVPTX_NAMES_64 NVPTX_NAMES_32 ", " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define NVPTX_NAMES_128 NVPTX_NAMES_64 ", " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, " \
  "%51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define NVPTX_NAMES_256 NVPTX_NAMES_128 ", " \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, " \
  "%83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, " \
  "%101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, " \
  "%117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

#define NVPTX_DESCRIPTOR(a, i, turned) tilth_descriptor(NVPTX_ADDRESS(a, i), sizeof *(a), a##_row, a##_rows, (turned))
#define NVPTX_WGMMA(n, shape, constraint, d, apart, x, y, end)                                                        \
  __asm__ volatile("wgmma.mma_async.sync.aligned.m64n" #n shape " {" NVPTX_NAMES_##n "}, %[a], %[b], 1" end ";"       \
                   : NVPTX_SUMS_##n(constraint, d, apart, 0)                                                          \
                   : [a] "l"(x), [b] "l"(y))
#define NVPTX_WGMMA_BF16(n, d, apart, x, y, ta, tb) \
  NVPTX_WGMMA(n, "k16.f32.bf16.bf16", "+f", d, apart, x, y, ", 1, 1, " #ta ", " #tb)
#define NVPTX_WGMMA_F16(n, d, apart, x, y, ta, tb) \
  NVPTX_WGMMA(n, "k16.f32.f16.f16", "+f", d, apart, x, y, ", 1, 1, " #ta ", " #tb)
#define NVPTX_WGMMA_TF32(n, d, apart, x, y, ta, tb) NVPTX_WGMMA(n, "k8.f32.tf32.tf32", "+f", d, apart, x, y, ", 1, 1")
#define NVPTX_WGMMA_S8(n, d, apart, x, y, ta, tb) NVPTX_WGMMA(n, "k32.s32.s8.s8", "+r", d, apart, x, y, "")
#define NVPTX_WGMMA_U8(n, d, apart, x, y, ta, tb) NVPTX_WGMMA(n, "k32.s32.u8.u8", "+r", d, apart, x, y, "")
#define NVPTX_WGMMA_S8_U8(n, d, apart, x, y, ta, tb) NVPTX_WGMMA(n, "k32.s32.s8.u8", "+r", d, apart, x, y, "")
#define NVPTX_WGMMA_U8_S8(n, d, apart, x, y, ta, tb) NVPTX_WGMMA(n, "k32.s32.u8.s8", "+r", d, apart, x, y, "")
#define WGMMA(n, type, d, apart, a, i, a_turned, b, j, b_turned) \
  NVPTX_WGMMA_##type(n, d, apart, NVPTX_DESCRIPTOR(a, i, a_turned), NVPTX_DESCRIPTOR(b, j, b_turned), \
                     a_turned, b_turned)
