/* The monitor on RISC-V. A candidate runs in user mode, whose memory physical memory protection limits to the candidates', and leaves by a trap:
 * its return is an environment call. */
#include "monitor.h"

#define CLINT(offset) (*(volatile uint32_t *)(BOARD_CLINT + (offset)))

enum { COMPARE = 0x4000, TIME = 0xBFF8 };

/* Causes of traps. */
enum { TRAP_CALL = 8, TRAP_INTERRUPT = (int)0x80000000, TRAP_TIMER = TRAP_INTERRUPT + 7, TRAP_INPUT = TRAP_INTERRUPT + 11 };

#define READ(csr) ({ uint32_t value_; __asm__ volatile("csrr %0, " csr : "=r"(value_)); value_; })
#define WRITE(csr, value) __asm__ volatile("csrw " csr ", %0" ::"r"((uint32_t)(value)))

static struct {
  uint32_t overhead;
} core;

/* What core_enter saved: where the monitor's stack is, for the trap; and the counter as it was when the candidate left. */
uint32_t core_stack, core_ticks[2];

/* Enters the candidate: a0 is a struct link_call. A trap returns behind its mret. The last instructions are all that user mode runs of the
 * monitor, whose memory it cannot touch: they lie in the candidates' memory, where core_open put them. */
__attribute__((naked)) static void core_enter(const struct link_call *c) {
  __asm__ volatile(
      "addi sp, sp, -64\n"
      "sw ra, 0(sp)\n sw s0, 4(sp)\n sw s1, 8(sp)\n sw s2, 12(sp)\n sw s3, 16(sp)\n sw s4, 20(sp)\n sw s5, 24(sp)\n sw s6, 28(sp)\n"
      "sw s7, 32(sp)\n sw s8, 36(sp)\n sw s9, 40(sp)\n sw s10, 44(sp)\n sw s11, 48(sp)\n sw gp, 52(sp)\n sw tp, 56(sp)\n"
      "la t0, core_stack\n sw sp, 0(t0)\n"
      "lw t1, 0(a0)\n csrw mepc, t1\n"
      "lw sp, 20(a0)\n andi sp, sp, -16\n"
      "mv t0, a0\n lw a0, 4(t0)\n lw a1, 8(t0)\n lw a2, 12(t0)\n lw a3, 16(t0)\n"
      "li ra, %0\n"
      "fence.i\n"
      "mret\n"
      ".balign 4\n .globl core_trap\n core_trap:\n"
      "csrr t0, mcycle\n csrr t1, mcycleh\n"
      "la t2, core_ticks\n sw t0, 0(t2)\n sw t1, 4(t2)\n"
      "la t0, core_stack\n lw sp, 0(t0)\n"
      "lw ra, 0(sp)\n lw s0, 4(sp)\n lw s1, 8(sp)\n lw s2, 12(sp)\n lw s3, 16(sp)\n lw s4, 20(sp)\n lw s5, 24(sp)\n lw s6, 28(sp)\n"
      "lw s7, 32(sp)\n lw s8, 36(sp)\n lw s9, 40(sp)\n lw s10, 44(sp)\n lw s11, 48(sp)\n lw gp, 52(sp)\n lw tp, 56(sp)\n"
      "addi sp, sp, 64\n ret\n" ::"i"(BOARD_MEMORY));
}

extern char core_trap[];

static uint64_t cycles(void) {
  uint32_t high, low;
  do high = READ("mcycleh"), low = READ("mcycle");
  while (high != READ("mcycleh"));
  return (uint64_t)high << 32 | low;
}

static void set_alarm(uint64_t after) {
  uint32_t high, low;
  do high = CLINT(TIME + 4), low = CLINT(TIME);
  while (high != CLINT(TIME + 4));
  uint64_t at = ((uint64_t)high << 32 | low) + after;
  CLINT(COMPARE + 4) = ~0u, CLINT(COMPARE) = (uint32_t)at, CLINT(COMPARE + 4) = (uint32_t)(at >> 32);
}

void core_forget(void) {}

void core_wait(void) { __asm__ volatile("wfi" ::: "memory"); }

uint32_t core_counter(void) { return LINK_CYCLES; }

static uint32_t ending(uint32_t cause) {
  switch (cause) {
    case TRAP_CALL: return LINK_RETURNED;
    case (uint32_t)TRAP_TIMER: return LINK_DEADLINE;
    case (uint32_t)TRAP_INPUT: return LINK_INTERRUPTED;
    default: return LINK_FAULT;
  }
}

/* What a call returns to: an environment call. */
static void put_return(void) { *(volatile uint32_t *)BOARD_MEMORY = 0x00000073; }

void core_call(const struct link_call *c, struct link_called *r) {
  uint64_t deadline = (uint64_t)c->deadline_high << 32 | c->deadline_low, longest = UINT64_C(1) << 50;
  put_return();
  board_quiet();
  WRITE("mtvec", core_trap);
  WRITE("mie", 1 << 7 | 1 << 11);
  WRITE("mstatus", 1 << 13 | 1 << 9 | 1 << 7); /* floats and vectors are on; user mode is next, with interrupts */
  set_alarm(((deadline < longest ? deadline : longest) >> BOARD_TIMER_SHIFT) + 1);
  uint64_t began = cycles();
  core_enter(c);
  uint64_t ticks = ((uint64_t)core_ticks[1] << 32 | core_ticks[0]) - began;
  uint32_t cause = READ("mcause");
  ticks = ticks > core.overhead ? ticks - core.overhead : 1;
  *r = (struct link_called){.ending = ending(cause), .ticks_low = (uint32_t)ticks, .ticks_high = (uint32_t)(ticks >> 32)};
  if (r->ending == LINK_FAULT) r->cause = cause, r->pc = READ("mepc"), r->address = READ("mtval");
  WRITE("mie", 1 << 11); /* what arrives ends a sleep; it interrupts only candidates */
}

static void weigh(void) {
  struct link_call c = {.entry = BOARD_MEMORY, .stack = BOARD_MEMORY + 4096, .deadline_low = ~0u};
  struct link_called r;
  core_call(&c, &r);
  core_call(&c, &r);
  core.overhead = r.ending == LINK_RETURNED ? r.ticks_low : 0;
}

void core_open(void) {
  WRITE("pmpaddr0", BOARD_MEMORY >> 2);
  WRITE("pmpaddr1", (BOARD_MEMORY + BOARD_MEMORY_BYTES) >> 2);
  WRITE("pmpcfg0", 0x0F00); /* entry 1: from entry 0's address to its own, all rights; entry 0: none */
  WRITE("mcounteren", 7);
  weigh();
}

extern uint32_t bss_begin[], bss_end[];

__attribute__((used)) static void start(void) {
  for (volatile uint32_t *p = bss_begin; p < bss_end; p++) *p = 0;
  monitor();
}

__attribute__((naked, section(".vectors"), used)) void on_reset(void) {
  __asm__ volatile("csrw mie, zero\n csrw mstatus, zero\n la sp, stack_end\n j start\n");
}
