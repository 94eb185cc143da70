/* Kernels that are always the same work: chains of products of matrices, in one of the formats of a card's instructions for them. */
#ifndef TILTH_MATRICES_H
#define TILTH_MATRICES_H
#include <stdio.h>

/* A format: the instruction, what it adds up in, its operations, a multiplication and an addition counting as two, and how many warps have one
 * instruction together. */
struct matrices {
  const char *instruction, *sum;
  double operations;
  int warps;
};

enum { MATRICES_STEPS = 2048, MATRICES_UNROLLED = 4, MATRICES_FORMATS = 8, MATRICES_CODE = 8192 };

/* In the order of tilth_matrices_peak: those of a warp, then those of a warpgroup. */
static const struct matrices matrices[MATRICES_FORMATS] = {{"m16n8k8.row.col.f32.tf32.tf32.f32", "f32", 2.0 * 16 * 8 * 8, 1},
                                                           {"m16n8k16.row.col.f32.bf16.bf16.f32", "f32", 2.0 * 16 * 8 * 16, 1},
                                                           {"m16n8k16.row.col.f32.f16.f16.f32", "f32", 2.0 * 16 * 8 * 16, 1},
                                                           {"m16n8k32.row.col.s32.s8.s8.s32", "s32", 2.0 * 16 * 8 * 32, 1},
                                                           {"m64n256k8.f32.tf32.tf32", "f32", 2.0 * 64 * 256 * 8, 4},
                                                           {"m64n256k16.f32.bf16.bf16", "f32", 2.0 * 64 * 256 * 16, 4},
                                                           {"m64n256k16.f32.f16.f16", "f32", 2.0 * 64 * 256 * 16, 4},
                                                           {"m64n256k32.s32.s8.s8", "s32", 2.0 * 64 * 256 * 32, 4}};

/* Writes the PTX of tilth_calibration_matrices for a format of a warp. It takes what tilth_calibration does. Factors are no zeros: those cost less power. */
static inline void matrices_code(const struct matrices *m, char code[MATRICES_CODE]) {
  int n = snprintf(code, MATRICES_CODE,
                   ".version 7.0\n.target sm_80\n.address_size 64\n"
                   ".visible .entry tilth_calibration_matrices(.param .u64 sums) {\n"
                   "  .reg .pred %%p; .reg .%s %%c<16>; .reg .b32 %%a<6>; .reg .b32 %%r<5>; .reg .b64 %%d<3>;\n"
                   "  ld.param.u64 %%d0, [sums]; cvta.to.global.u64 %%d0, %%d0;\n"
                   "  mov.u32 %%r0, %%tid.x; mov.u32 %%r1, %%ctaid.x; mov.u32 %%r2, %%ntid.x; mad.lo.u32 %%r3, %%r1, %%r2, %%r0; mov.u32 %%r4, 0;\n",
                   m->sum);
  for (int k = 0; k < 6; k++) n += snprintf(code + n, MATRICES_CODE - n, "  xor.b32 %%a%d, %%r0, 0x%08x;\n", k, 0x3F013E81u + 0x00110007u * (unsigned)k);
  for (int k = 0; k < 16; k++) n += snprintf(code + n, MATRICES_CODE - n, "  mov.b32 %%c%d, %%r4;\n", k);
  n += snprintf(code + n, MATRICES_CODE - n, "more:\n");
  for (int k = 0; k < 4 * MATRICES_UNROLLED; k += 4)
    n += snprintf(code + n, MATRICES_CODE - n, "  mma.sync.aligned.%s {%%c%d,%%c%d,%%c%d,%%c%d}, {%%a0,%%a1,%%a2,%%a3}, {%%a4,%%a5}, {%%c%d,%%c%d,%%c%d,%%c%d};\n",
                  m->instruction, k, k + 1, k + 2, k + 3, k, k + 1, k + 2, k + 3);
  snprintf(code + n, MATRICES_CODE - n,
           "  add.u32 %%r4, %%r4, 1; setp.lt.u32 %%p, %%r4, %d; @%%p bra more;\n"
           "  add.%s %%c0, %%c0, %%c4; add.%s %%c0, %%c0, %%c8; add.%s %%c0, %%c0, %%c12;\n"
           "  mul.wide.u32 %%d1, %%r3, 4; add.u64 %%d2, %%d0, %%d1; st.global.%s [%%d2], %%c0;\n  ret;\n}\n",
           MATRICES_STEPS, m->sum, m->sum, m->sum, m->sum);
}

#endif
