/* The monitor on Cortex-M processors of Armv7-M and Armv8-M. A candidate runs unprivileged, on a stack of its own, and leaves by an exception:
 * its return is a supervisor call. Whichever exception it is, the handler goes back into core_call. */
#include "monitor.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))

enum {
  SYSTICK_CONTROL = 0xE000E010, SYSTICK_LOAD = 0xE000E014, SYSTICK_VALUE = 0xE000E018,
  INTERRUPTS_ON = 0xE000E100, INTERRUPTS_FORGET = 0xE000E280,
  PENDING = 0xE000ED04, VECTORS = 0xE000ED08, SETTINGS = 0xE000ED14, CAUSE = 0xE000ED28, HARD_CAUSE = 0xE000ED2C, MEMORY_ADDRESS = 0xE000ED34,
  BUS_ADDRESS = 0xE000ED38, CACHE_LEVELS = 0xE000ED78, CACHE_SIZE = 0xE000ED80, CACHE_CHOICE = 0xE000ED84, COPROCESSORS = 0xE000ED88,
  MPU_CONTROL = 0xE000ED94, MPU_NUMBER = 0xE000ED98, MPU_BASE = 0xE000ED9C, MPU_SIZE = 0xE000EDA0, MPU_KINDS = 0xE000EDC0,
  DEBUG = 0xE000EDFC, FLOATS = 0xE000EF34, CODE_FORGET = 0xE000EF50, DATA_DROP = 0xE000EF60, DATA_CLEAN = 0xE000EF74,
  DWT_CONTROL = 0xE0001000, DWT_CYCLES = 0xE0001004, DWT_LOCK = 0xE0001FB0,
};

/* SysTick's counter has 24 bits; so often the deadline is looked at, too. */
#define PERIOD UINT32_C(0x100000)
#define SYSTICK_PENDS (1u << 26)
#define SYSTICK_DROP (1u << 25)

static struct {
  uint32_t has_cycles, has_caches, overhead;
  volatile uint32_t periods, most;
  uint32_t ending, cause, pc, address, began;
  volatile uint64_t ticks;
  const struct link_call *entering;
} core;

/* What core_enter saved: where the monitor's stack is, for the handlers. */
uint32_t core_stack;

static void barrier(void) { __asm__ volatile("dsb\n isb" ::: "memory"); }

/* Calls on_call, which goes to the candidate. Handlers return to core_left. */
__attribute__((naked)) static void core_enter(void) {
  __asm__ volatile(
      "push {r3-r11, lr}\n"
      "ldr r1, =core_stack\n str sp, [r1]\n"
      "cpsie i\n"
      "svc 0\n"
      ".globl core_left\n .thumb_func\n core_left:\n"
      "pop {r3-r11, pc}\n .ltorg\n");
}

/* Leaves a handler: the frame on the monitor's stack is one that returns to core_left, in thread mode. */
__attribute__((naked, noreturn, used)) void core_leave(void) {
  __asm__ volatile(
      "ldr r1, =core_stack\n ldr r1, [r1]\n"
      "sub r1, r1, #32\n mov r2, #0\n"
      "str r2, [r1]\n str r2, [r1, #4]\n str r2, [r1, #8]\n str r2, [r1, #12]\n str r2, [r1, #16]\n str r2, [r1, #20]\n"
      "ldr r2, =core_left\n bic r2, r2, #1\n str r2, [r1, #24]\n"
      "mov r2, #0x01000000\n str r2, [r1, #28]\n"
      "msr msp, r1\n"
      "mov r0, #0\n msr control, r0\n isb\n"
      "cpsid i\n"
      "mvn r0, #6\n bx r0\n .ltorg\n");
}

/* Leaves a handler for the candidate, unprivileged: the frame of its call is at `frame`, on its stack. */
__attribute__((naked, noreturn)) static void core_go(uint32_t *frame) {
  __asm__ volatile(
      "msr psp, r0\n"
      "ldr r1, =core_stack\n ldr r1, [r1]\n msr msp, r1\n"
      "mov r0, #1\n msr control, r0\n isb\n"
      "mvn r0, #2\n bx r0\n .ltorg\n");
}

static uint64_t elapsed(void) {
  uint32_t cycles = REGISTER(DWT_CYCLES) - core.began, value = REGISTER(SYSTICK_VALUE), periods = core.periods;
  if (REGISTER(PENDING) & SYSTICK_PENDS) periods++, value = REGISTER(SYSTICK_VALUE);
  uint64_t ticks = (uint64_t)periods * PERIOD + (PERIOD - 1 - value);
  if (!core.has_cycles) return ticks;
  return ticks + (int32_t)(cycles - (uint32_t)ticks);
}

static void end(uint32_t ending) {
  core.ticks = elapsed();
  core.ending = ending;
}

/* The word of the frame that an exception left on the candidate's stack, if that is where it may be. */
static uint32_t stacked(int word) {
  uint32_t psp;
  __asm__ volatile("mrs %0, psp" : "=r"(psp));
  if (psp < BOARD_MEMORY || psp - BOARD_MEMORY > BOARD_MEMORY_BYTES - 32) return 0;
  return ((const uint32_t *)psp)[word];
}

/* The monitor's call enters the candidate; the candidate's is its return. */
void on_call(void) {
  const struct link_call *c = core.entering;
  core.entering = 0;
  if (!c) {
    end(LINK_RETURNED);
    core_leave();
  }
  uint32_t *frame = (uint32_t *)(c->stack & ~7u) - 8;
  for (int k = 0; k < 4; k++) frame[k] = c->arguments[k];
  frame[4] = 0, frame[5] = BOARD_MEMORY | 1, frame[6] = c->entry & ~1u, frame[7] = 1u << 24;
  core_go(frame);
}

void on_fault(void) {
  end(LINK_FAULT);
  uint32_t cause = REGISTER(CAUSE);
  core.cause = cause ? cause : REGISTER(HARD_CAUSE);
  core.address = cause & 0x80 ? REGISTER(MEMORY_ADDRESS) : cause & 0x8000 ? REGISTER(BUS_ADDRESS) : 0;
  core.pc = cause & 0x1818 ? 0 : stacked(6);
  REGISTER(CAUSE) = cause, REGISTER(HARD_CAUSE) = REGISTER(HARD_CAUSE);
  core_leave();
}

void on_input(void) {
  end(LINK_INTERRUPTED);
  core_leave();
}

/* Either the deadline is over, or the interrupt ends. */
__attribute__((used)) static int on_period(void) {
  if (++core.periods < core.most) return 0;
  end(LINK_DEADLINE);
  return 1;
}

__attribute__((naked)) void on_tick(void) {
  __asm__ volatile("push {r4, lr}\n bl on_period\n cmp r0, #0\n it eq\n popeq {r4, pc}\n b core_leave\n");
}

/* The compiler's names for filling and copying. */
void *memset(void *to, int value, __SIZE_TYPE__ n);
void *memcpy(void *to, const void *from, __SIZE_TYPE__ n);
void __aeabi_memclr(void *to, __SIZE_TYPE__ n) { memset(to, 0, n); }
void __aeabi_memclr4(void *to, __SIZE_TYPE__ n) { memset(to, 0, n); }
void __aeabi_memclr8(void *to, __SIZE_TYPE__ n) { memset(to, 0, n); }
void __aeabi_memcpy(void *to, const void *from, __SIZE_TYPE__ n) { memcpy(to, from, n); }
void __aeabi_memcpy4(void *to, const void *from, __SIZE_TYPE__ n) { memcpy(to, from, n); }
void __aeabi_memcpy8(void *to, const void *from, __SIZE_TYPE__ n) { memcpy(to, from, n); }

void core_forget(void) { REGISTER(INTERRUPTS_FORGET) = ~0u, REGISTER(INTERRUPTS_FORGET + 4) = ~0u; }

void core_wait(void) { __asm__ volatile("wfi" ::: "memory"); }

/* Writes back what the data cache holds, drops it if that is wanted, and forgets what the other cache holds. */
static void caches(int drop) {
  barrier();
  if (core.has_caches) {
    REGISTER(CACHE_CHOICE) = 0;
    barrier();
    uint32_t size = REGISTER(CACHE_SIZE), ways = (size >> 3 & 0x3FF) + 1, sets = (size >> 13 & 0x7FFF) + 1, line = (size & 7) + 4;
    uint32_t shift = ways > 1 ? (uint32_t)__builtin_clz(ways - 1) : 0;
    for (uint32_t s = 0; s < sets; s++)
      for (uint32_t w = 0; w < ways; w++) REGISTER(drop ? DATA_CLEAN : 0xE000EF6C) = s << line | (ways > 1 ? w << shift : 0);
    barrier();
    REGISTER(CODE_FORGET) = 0;
  }
  barrier();
}

static void start_counting(uint32_t periods) {
  core.periods = 0, core.most = periods;
  REGISTER(SYSTICK_CONTROL) = 0;
  REGISTER(SYSTICK_LOAD) = PERIOD - 1, REGISTER(SYSTICK_VALUE) = 0;
  REGISTER(PENDING) = SYSTICK_DROP;
  REGISTER(SYSTICK_CONTROL) = 7;
  while (REGISTER(SYSTICK_VALUE) == 0) continue; /* until the first tick has loaded it */
  core.began = REGISTER(DWT_CYCLES);
}

static void run(const struct link_call *c, struct link_called *r) {
  uint64_t periods = ((uint64_t)c->deadline_high << 32 | c->deadline_low) / PERIOD + 1;
  core.cause = core.pc = core.address = 0;
  *(volatile uint16_t *)BOARD_MEMORY = 0xDF00; /* what a call returns to: svc 0 */
  board_quiet();
  core_forget();
  caches(c->cold != 0);
  start_counting(periods > UINT32_MAX ? UINT32_MAX : (uint32_t)periods);
  core.entering = c;
  core_enter();
  core.entering = 0;
  REGISTER(SYSTICK_CONTROL) = 0, REGISTER(PENDING) = SYSTICK_DROP;
  uint64_t ticks = core.ticks > core.overhead ? core.ticks - core.overhead : 1;
  *r = (struct link_called){.ending = core.ending, .ticks_low = (uint32_t)ticks, .ticks_high = (uint32_t)(ticks >> 32), .cause = core.cause,
                            .pc = core.pc, .address = core.address};
}

void core_call(const struct link_call *c, struct link_called *r) { run(c, r); }

/* Lets candidates at their memory, and at nothing else: the processor's default map is for the monitor alone. */
static void protect(void) {
  REGISTER(MPU_NUMBER) = 0;
#if __ARM_ARCH >= 8
  REGISTER(MPU_KINDS) = 0xFF; /* kind 0: normal memory, written back */
  REGISTER(MPU_BASE) = BOARD_MEMORY | 1 << 1;
  REGISTER(MPU_SIZE) = ((BOARD_MEMORY + BOARD_MEMORY_BYTES - 1) & ~31u) | 1;
#else
  REGISTER(MPU_BASE) = BOARD_MEMORY;
  REGISTER(MPU_SIZE) = 3u << 24 | 1u << 19 | 3u << 16 | (uint32_t)(31 - __builtin_clz(BOARD_MEMORY_BYTES) - 1) << 1 | 1;
#endif
  barrier();
  REGISTER(MPU_CONTROL) = 5;
  barrier();
}

static void count_cycles(void) {
  REGISTER(DEBUG) |= 1u << 24;
  REGISTER(DWT_LOCK) = 0xC5ACCE55;
  REGISTER(DWT_CONTROL) |= 1;
  uint32_t before = REGISTER(DWT_CYCLES);
  for (volatile int k = 0; k < 100; k++) continue;
  core.has_cycles = REGISTER(DWT_CYCLES) != before;
}

/* Switches the caches on where there are any; they hold nothing yet. */
static void open_caches(void) {
  core.has_caches = (REGISTER(CACHE_LEVELS) & 7) != 0;
  if (!core.has_caches) return;
  REGISTER(CODE_FORGET) = 0;
  REGISTER(CACHE_CHOICE) = 0;
  barrier();
  uint32_t size = REGISTER(CACHE_SIZE), ways = (size >> 3 & 0x3FF) + 1, sets = (size >> 13 & 0x7FFF) + 1, line = (size & 7) + 4;
  uint32_t shift = ways > 1 ? (uint32_t)__builtin_clz(ways - 1) : 0;
  for (uint32_t s = 0; s < sets; s++)
    for (uint32_t w = 0; w < ways; w++) REGISTER(DATA_DROP) = s << line | (ways > 1 ? w << shift : 0);
  barrier();
  REGISTER(SETTINGS) |= 3u << 16;
  barrier();
}

uint32_t core_counter(void) { return core.has_cycles ? LINK_CYCLES : LINK_TIMER; }

/* What a call takes that does nothing. */
static void weigh(void) {
  struct link_call c = {.entry = BOARD_MEMORY, .stack = BOARD_MEMORY + 4096, .deadline_low = PERIOD};
  struct link_called r;
  core.overhead = 0;
  run(&c, &r);
  run(&c, &r);
  core.overhead = r.ending == LINK_RETURNED ? r.ticks_low : 0;
}

void core_open(void) {
  __asm__ volatile("cpsid i");
  REGISTER(COPROCESSORS) |= 0xFu << 20;
  barrier();
  REGISTER(FLOATS) &= ~(3u << 30); /* the monitor uses no registers of floats: they need not be saved */
  REGISTER(INTERRUPTS_ON) = ~0u, REGISTER(INTERRUPTS_ON + 4) = ~0u;
  open_caches();
  protect();
  count_cycles();
  weigh();
}

extern uint32_t bss_begin[], bss_end[], stack_end[];

__attribute__((noreturn)) void on_reset(void) {
  extern const uint32_t vectors[];
  __asm__ volatile("cpsid i");
  for (volatile uint32_t *p = bss_begin; p < bss_end; p++) *p = 0;
  REGISTER(VECTORS) = (uint32_t)vectors;
  monitor();
  __builtin_unreachable();
}

#define FOUR(f) f, f, f, f
#define SIXTEEN(f) FOUR(f), FOUR(f), FOUR(f), FOUR(f)

__attribute__((section(".vectors"), used, aligned(1024))) void *const vectors_table[] = {
    stack_end, on_reset, on_fault, on_fault, on_fault, on_fault, on_fault, on_fault, 0, 0, 0, on_call, on_fault, 0, on_fault, on_tick,
    SIXTEEN(on_input), SIXTEEN(on_input), SIXTEEN(on_input), SIXTEEN(on_input), SIXTEEN(on_input), SIXTEEN(on_input), SIXTEEN(on_input), SIXTEEN(on_input),
};
