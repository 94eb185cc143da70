/* What a Cortex-M does before main, and how a program under an emulator speaks: by semihosting. */
#include <stdint.h>
#include "start.h"

extern uint32_t stack_top, data_begin, data_end, data_from, bss_begin, bss_end;

void reset(void) {
  *(volatile uint32_t *)0xe000ed88 |= 0xf << 20; /* the unit for floats and vectors */
  __asm__ volatile("dsb\n isb" ::: "memory");
  uint32_t *from = &data_from;
  for (uint32_t *p = &data_begin; p < &data_end;) *p++ = *from++;
  for (uint32_t *p = &bss_begin; p < &bss_end;) *p++ = 0;
  *(volatile uint32_t *)0xe000e014 = 0xffffff; /* the timer counts down, a tick for 40 instructions */
  *(volatile uint32_t *)0xe000e018 = 0;
  *(volatile uint32_t *)0xe000e010 = 5;
  quit(main());
}

static void fault(void) {
  print("fault\n");
  quit(1);
}

__attribute__((section(".vectors"), used)) static void *const vectors[16] = {
  &stack_top, (void *)reset, (void *)fault, (void *)fault, (void *)fault, (void *)fault, (void *)fault,
};

static int call(int operation, const void *argument) {
  register int r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

void print(const char *text) { call(4, text); }

void quit(int code) {
  const uint32_t block[2] = {0x20026, (uint32_t)code};
  call(0x20, block);
  for (;;) {}
}

uint32_t ticks(void) { return (0xffffff - *(volatile uint32_t *)0xe000e018) * 40; }
