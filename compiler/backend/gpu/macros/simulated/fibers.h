/* Fibers: stacks that one processor goes to and fro between. Signal masks and rounding modes are those of all. */

/* Leaves the stack that it is called on, which *leave goes back to, for another one. That one's function gets the
 * argument if it is entered for the first time. */
__attribute__((visibility("hidden"))) void tilth_sim_switch(void **leave, void *enter, void *argument);
#if defined __x86_64__
__asm__(
    ".text\n.local tilth_sim_switch\n.type tilth_sim_switch, @function\ntilth_sim_switch:\n"
    " push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
    " mov %rsp, (%rdi)\n mov %rsi, %rsp\n mov %rdx, %rdi\n"
    " pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n");
enum { SIM_FRAME = 7, SIM_ENTRY = 6 };
#elif defined __aarch64__
__asm__(
    ".text\n.local tilth_sim_switch\n.type tilth_sim_switch, %function\ntilth_sim_switch:\n"
    " sub sp, sp, #160\n"
    " stp x19, x20, [sp]\n stp x21, x22, [sp, #16]\n stp x23, x24, [sp, #32]\n stp x25, x26, [sp, #48]\n"
    " stp x27, x28, [sp, #64]\n stp x29, x30, [sp, #80]\n"
    " stp d8, d9, [sp, #96]\n stp d10, d11, [sp, #112]\n stp d12, d13, [sp, #128]\n stp d14, d15, [sp, #144]\n"
    " mov x9, sp\n str x9, [x0]\n mov sp, x1\n mov x0, x2\n"
    " ldp x19, x20, [sp]\n ldp x21, x22, [sp, #16]\n ldp x23, x24, [sp, #32]\n ldp x25, x26, [sp, #48]\n"
    " ldp x27, x28, [sp, #64]\n ldp x29, x30, [sp, #80]\n"
    " ldp d8, d9, [sp, #96]\n ldp d10, d11, [sp, #112]\n ldp d12, d13, [sp, #128]\n ldp d14, d15, [sp, #144]\n"
    " add sp, sp, #160\n ret\n");
enum { SIM_FRAME = 20, SIM_ENTRY = 11 };
#elif defined __riscv
__asm__(
    ".text\n.local tilth_sim_switch\n.type tilth_sim_switch, %function\ntilth_sim_switch:\n"
    " addi sp, sp, -208\n"
    " sd ra, 0(sp)\n sd s0, 8(sp)\n sd s1, 16(sp)\n sd s2, 24(sp)\n sd s3, 32(sp)\n sd s4, 40(sp)\n sd s5, 48(sp)\n"
    " sd s6, 56(sp)\n sd s7, 64(sp)\n sd s8, 72(sp)\n sd s9, 80(sp)\n sd s10, 88(sp)\n sd s11, 96(sp)\n"
    " fsd fs0, 104(sp)\n fsd fs1, 112(sp)\n fsd fs2, 120(sp)\n fsd fs3, 128(sp)\n fsd fs4, 136(sp)\n fsd fs5, 144(sp)\n"
    " fsd fs6, 152(sp)\n fsd fs7, 160(sp)\n fsd fs8, 168(sp)\n fsd fs9, 176(sp)\n fsd fs10, 184(sp)\n fsd fs11, 192(sp)\n"
    " sd sp, 0(a0)\n mv sp, a1\n mv a0, a2\n"
    " ld ra, 0(sp)\n ld s0, 8(sp)\n ld s1, 16(sp)\n ld s2, 24(sp)\n ld s3, 32(sp)\n ld s4, 40(sp)\n ld s5, 48(sp)\n"
    " ld s6, 56(sp)\n ld s7, 64(sp)\n ld s8, 72(sp)\n ld s9, 80(sp)\n ld s10, 88(sp)\n ld s11, 96(sp)\n"
    " fld fs0, 104(sp)\n fld fs1, 112(sp)\n fld fs2, 120(sp)\n fld fs3, 128(sp)\n fld fs4, 136(sp)\n fld fs5, 144(sp)\n"
    " fld fs6, 152(sp)\n fld fs7, 160(sp)\n fld fs8, 168(sp)\n fld fs9, 176(sp)\n fld fs10, 184(sp)\n fld fs11, 192(sp)\n"
    " addi sp, sp, 208\n ret\n");
enum { SIM_FRAME = 26, SIM_ENTRY = 0 };
#else
#error "gpu-sim: this architecture has no fibers yet"
#endif

enum { SIM_STACK = 64 << 10, SIM_STACK_COLOURS = 32, SIM_STACK_COLOUR = 192 };

/* The n-th of a region's stacks, on which entry is begun when it is entered for the first time. Stacks begin at
 * different offsets, else all of them would fight for the same few lines of a cache. */
SIM_STATIC void *sim_fresh_stack(char *stacks, int n, void *entry) {
  char *end = stacks + (size_t)(n + 1) * SIM_STACK - (size_t)(n % SIM_STACK_COLOURS) * SIM_STACK_COLOUR;
  void **top = (void **)end;
#if defined __x86_64__
  *--top = 0; /* a function is entered with a return address below a multiple of 16 */
#endif
  void **frame = top - SIM_FRAME;
  memset(frame, 0, SIM_FRAME * sizeof *frame);
  frame[SIM_ENTRY] = entry;
  return frame;
}
