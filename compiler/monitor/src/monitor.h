/* The parts of a monitor: what its processor and its board do for it. */
#ifndef TILTH_MONITOR_H
#define TILTH_MONITOR_H
#include <stdint.h>

#include "board.h"
#include "link.h"

/* So often the monitor looks whether something has arrived before it sleeps, and counts so far in between. An emulator answers such looks under
 * a lock that what arrives needs, too. */
#ifndef BOARD_PATIENCE
#define BOARD_PATIENCE 20000
#endif
#ifndef BOARD_PAUSE
#define BOARD_PAUSE 0
#endif

static inline void pause_a_little(void) {
  for (int k = 0; k < BOARD_PAUSE; k++) __asm__ volatile("nop");
}

/* The board's. A byte is sent, or awaited while the processor sleeps. */
void board_open(void);
void board_send(unsigned char byte);
unsigned char board_receive(void);
/* Forgets that something arrived, so that only what arrives from now on interrupts. */
void board_quiet(void);

/* The processor's. */
void core_open(void);
/* Forgets interrupts that have not been taken. */
void core_forget(void);
/* Sleeps until something arrives. */
void core_wait(void);
uint32_t core_counter(void);
/* Runs the code that was written last, with no more rights than the candidates' memory. */
void core_call(const struct link_call *c, struct link_called *r);

/* Serves the host, for ever. */
void monitor(void);

#endif
