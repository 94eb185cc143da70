/* A kernel that is always the same work: a chain of multiply-adds in each thread. */
#ifndef TILTH_CALIBRATION_H
#define TILTH_CALIBRATION_H

enum { CALIBRATION_THREADS = 256, CALIBRATION_BLOCKS = 8, CALIBRATION_STEPS = 16384, CALIBRATION_UNROLLED = 4 }; /* blocks for each multiprocessor */

static const char calibration_code[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry tilth_calibration(.param .u64 sums) {\n"
    "  .reg .pred %p; .reg .f32 %f<4>; .reg .b32 %r<5>; .reg .b64 %d<4>;\n"
    "  ld.param.u64 %d0, [sums]; cvta.to.global.u64 %d0, %d0;\n"
    "  mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %r0;\n"
    "  cvt.rn.f32.u32 %f0, %r0; mov.f32 %f1, 0f3F000000; mov.u32 %r4, 0;\n"
    "more:\n"
    "  fma.rn.f32 %f0, %f0, %f1, %f1; fma.rn.f32 %f0, %f0, %f1, %f1; fma.rn.f32 %f0, %f0, %f1, %f1; fma.rn.f32 %f0, %f0, %f1, %f1;\n"
    "  add.u32 %r4, %r4, 1; setp.lt.u32 %p, %r4, 16384; @%p bra more;\n"
    "  mul.wide.u32 %d1, %r3, 4; add.u64 %d2, %d0, %d1; st.global.f32 [%d2], %f0;\n  ret;\n}\n";

#endif
