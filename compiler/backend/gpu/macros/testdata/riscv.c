/* Fibers of 64-bit RISC-V, without a C library, of which tests have none for it. Two stacks take turns and each keeps
 * numbers in registers: the program ends with 0 when all of them are right. The text before has what fibers.h uses. */
static _Alignas(64 << 10) char stacks[2 * SIM_STACK];
static void *places[2], *home;
static long sums[2];
static int numbers[2] = {0, 1};

static void fiber(void *argument) {
  int me = *(int *)argument;
  long whole = me;
  double half = me + 0.5;
  for (int k = 0; k < 100; k++) {
    whole += k, half *= 1.0 + me;
    tilth_sim_switch(&places[me], places[1 - me], &numbers[1 - me]); /* the other one's argument, if it only begins */
  }
  sums[me] = whole + (half == (me ? 1.5 * 0x1p+100 : 0.5));
  tilth_sim_switch(&places[me], me ? home : places[1], 0);
}

void end(long code) {
  register long a0 __asm__("a0") = code;
  register long a7 __asm__("a7") = 93;
  __asm__ volatile("ecall" ::"r"(a0), "r"(a7));
}

void _start(void) {
  places[0] = sim_fresh_stack(stacks, 0, (void *)fiber);
  places[1] = sim_fresh_stack(stacks, 1, (void *)fiber);
  tilth_sim_switch(&home, places[0], &numbers[0]);
  end(!(sums[0] == 4950 + 1 && sums[1] == 4950 + 1 + 1));
}
