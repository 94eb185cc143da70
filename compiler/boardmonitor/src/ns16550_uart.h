/* The serial port that most boards have, and its line through RISC-V's PLIC. */
#include "monitor.h"

#define UART ((volatile unsigned char *)BOARD_UART)
#define PLIC(offset) (*(volatile uint32_t *)(BOARD_PLIC + (offset)))

enum { UART_DATA = 0, UART_INTERRUPTS = 1, UART_FIFO = 2, UART_FORMAT = 3, UART_STATE = 5, UART_ARRIVED = 1, UART_EMPTY = 0x20 };

void board_open(void) {
  UART[UART_FORMAT] = 3;
  UART[UART_FIFO] = 0xC1;
  UART[UART_INTERRUPTS] = 1;
  PLIC(4 * BOARD_UART_INTERRUPT) = 1;
  PLIC(0x2000) = 1u << BOARD_UART_INTERRUPT;
  PLIC(0x200000) = 0;
}

void board_send(unsigned char byte) {
  while (!(UART[UART_STATE] & UART_EMPTY)) continue;
  UART[UART_DATA] = byte;
}

unsigned char board_receive(void) {
  while (!(UART[UART_STATE] & UART_ARRIVED)) {
    board_quiet();
    if (!(UART[UART_STATE] & UART_ARRIVED)) core_wait();
  }
  return UART[UART_DATA];
}

void board_quiet(void) {
  uint32_t line = PLIC(0x200004);
  if (line) PLIC(0x200004) = line;
}
