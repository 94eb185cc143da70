/* The parts of a monitor: what its processor and its board do for it. */
#ifndef TILTH_MONITOR_H
#define TILTH_MONITOR_H
#include <stdint.h>

#include "board.h"
#include "link.h"

/* The board's. A byte is sent, or awaited while the processor sleeps: one that looks again and again takes from an emulator the time in
 * which the byte would arrive. */
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
