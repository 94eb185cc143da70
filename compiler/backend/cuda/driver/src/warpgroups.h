/* Kernels that are always the same work: chains of products of matrices by warpgroups, of which sm_90a has instructions. */
#ifndef TILTH_WARPGROUPS_H
#define TILTH_WARPGROUPS_H
#include <string.h>

#include "calibration.h"
#include "matrices.h"

/* Both factors lie in shared memory, in rows of 128 bytes: a step's four instructions take 32 bytes each. */
enum { GROUP_STEPS = 256, GROUP_SUMS = 128, GROUP_ROWS = 64, GROUP_COLUMNS = 256, GROUP_ROW_BYTES = 128, GROUP_WORDS = (GROUP_ROWS + GROUP_COLUMNS) * GROUP_ROW_BYTES / 4 };

/* Matrices as their instructions find them (PTX ISA, "Matrix Descriptor Format"), but for the address: eight rows are 1024 bytes, swizzled by 128. */
#define GROUP_DESCRIPTOR "0x4000004000010000"

/* Writes the first part: factors are filled with numbers of either sign, between 1/4 and 1 in the formats of float, of which sums stay small. */
static inline int warpgroups_begin(const struct matrices *m, char *code) {
  int n = snprintf(code, MATRICES_CODE,
                   ".version 8.0\n.target sm_90a\n.address_size 64\n"
                   ".visible .entry tilth_calibration_matrices(.param .u64 sums)\n.maxntid %d, 1, 1\n{\n"
                   "  .reg .pred %%p; .reg .%s %%c<%d>; .reg .b32 %%r<8>; .reg .b64 %%d<11>; .shared .align 1024 .b8 factors[%d];\n"
                   "  ld.param.u64 %%d0, [sums]; cvta.to.global.u64 %%d0, %%d0;\n"
                   "  mov.u32 %%r0, %%tid.x; mov.u32 %%r1, %%ctaid.x; mov.u32 %%r2, %%ntid.x; mad.lo.u32 %%r3, %%r1, %%r2, %%r0; mov.u32 %%r4, factors;\n"
                   "  mov.u32 %%r5, %%r0; shl.b32 %%r6, %%r0, 2; add.u32 %%r6, %%r6, %%r4;\n"
                   "fill:\n"
                   "  mul.lo.u32 %%r7, %%r5, 0x9E3779B1; shr.u32 %%r1, %%r7, 15; xor.b32 %%r7, %%r7, %%r1; and.b32 %%r7, %%r7, 0x80FF80FF;\n"
                   "  xor.b32 %%r7, %%r7, 0x3F013E81; st.shared.b32 [%%r6], %%r7; add.u32 %%r5, %%r5, %%r2; mad.lo.u32 %%r6, %%r2, 4, %%r6;\n"
                   "  setp.lt.u32 %%p, %%r5, %d; @%%p bra fill;\n"
                   "  fence.proxy.async.shared::cta; bar.sync 0;\n"
                   "  shr.u32 %%r5, %%r4, 4; cvt.u64.u32 %%d3, %%r5; or.b64 %%d3, %%d3, " GROUP_DESCRIPTOR "; mov.u32 %%r4, 0;\n",
                   CALIBRATION_THREADS, m->sum, GROUP_SUMS, 4 * GROUP_WORDS, GROUP_WORDS);
  for (int k = 1; k < MATRICES_UNROLLED; k++) n += snprintf(code + n, MATRICES_CODE - n, "  add.u64 %%d%d, %%d3, %d;\n", 3 + k, 2 * k);
  for (int k = 0; k < MATRICES_UNROLLED; k++) n += snprintf(code + n, MATRICES_CODE - n, "  add.u64 %%d%d, %%d%d, %d;\n", 7 + k, 3 + k, GROUP_ROWS * GROUP_ROW_BYTES / 16);
  for (int k = 0; k < GROUP_SUMS; k++) n += snprintf(code + n, MATRICES_CODE - n, "  mov.b32 %%c%d, %%r4;\n", k);
  return n;
}

/* Writes the PTX of tilth_calibration_matrices for a format of a warpgroup. It takes what tilth_calibration does. Assemblers that unroll the loop
 * are at it for minutes: the instructions would have a hundred thousand registers in all. */
static inline void warpgroups_code(const struct matrices *m, char code[MATRICES_CODE]) {
  const char *scales = m->sum[0] == 's' ? "" : strstr(m->instruction, "tf32") ? ", 1, 1" : ", 1, 1, 0, 0";
  int n = warpgroups_begin(m, code);
  n += snprintf(code + n, MATRICES_CODE - n, "more:\n  .pragma \"nounroll\";\n  wgmma.fence.sync.aligned;\n");
  for (int k = 0; k < MATRICES_UNROLLED; k++) {
    n += snprintf(code + n, MATRICES_CODE - n, "  wgmma.mma_async.sync.aligned.%s {", m->instruction);
    for (int c = 0; c < GROUP_SUMS; c++) n += snprintf(code + n, MATRICES_CODE - n, "%s%%c%d", c > 0 ? "," : "", c);
    n += snprintf(code + n, MATRICES_CODE - n, "}, %%d%d, %%d%d, 1%s;\n", 3 + k, 7 + k, scales);
  }
  snprintf(code + n, MATRICES_CODE - n,
           "  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;\n"
           "  add.u32 %%r4, %%r4, 1; setp.lt.u32 %%p, %%r4, %d; @%%p bra more;\n"
           "  wgmma.wait_group.sync.aligned 0; mul.wide.u32 %%d1, %%r3, 4; add.u64 %%d2, %%d0, %%d1; st.global.%s [%%d2], %%c0;\n  ret;\n}\n",
           GROUP_STEPS, m->sum);
}

#endif
