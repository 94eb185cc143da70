/* What a RISC-V does before main, and how a program under an emulator speaks: by semihosting. */
#include <stdint.h>
#include "start.h"

extern uint32_t bss_begin, bss_end;

__attribute__((section(".vectors"), naked, used)) void reset(void) {
  __asm__ volatile(
      "la sp, stack_top\n"
      "li t0, 0x2000\n"
      "csrs mstatus, t0\n" /* the unit for floats */
      "la t0, fault\n"
      "csrw mtvec, t0\n"
      "tail begin\n");
}

__attribute__((used)) static void begin(void) {
  for (uint32_t *p = &bss_begin; p < &bss_end;) *p++ = 0;
  quit(main());
}

__attribute__((aligned(4), used)) static void fault(void) {
  print("fault\n");
  quit(1);
}

static int call(int operation, const void *argument) {
  register int a0 __asm__("a0") = operation;
  register const void *a1 __asm__("a1") = argument;
  __asm__ volatile(
      ".balign 16\n"
      ".option push\n"
      ".option norvc\n"
      "slli zero, zero, 0x1f\n"
      "ebreak\n"
      "srai zero, zero, 7\n"
      ".option pop\n"
      : "+r"(a0) : "r"(a1) : "memory");
  return a0;
}

void print(const char *text) { call(4, text); }

void quit(int code) {
  const uint32_t block[2] = {0x20026, (uint32_t)code};
  call(0x20, block);
  for (;;) {}
}

uint32_t ticks(void) {
  uint32_t n;
  __asm__ volatile("csrr %0, instret" : "=r"(n));
  return n;
}
