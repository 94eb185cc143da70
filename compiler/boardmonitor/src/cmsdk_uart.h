/* The serial port of Arm's FPGA boards. */
#include "monitor.h"

struct cmsdk_uart {
  volatile uint32_t data, state, control, interrupt, divider;
};

#define UART ((struct cmsdk_uart *)BOARD_UART)

enum { UART_FULL = 1, UART_ARRIVED = 2, UART_ENABLED = 3, UART_INTERRUPTS = 8 };

void board_open(void) {
  UART->divider = (uint32_t)(BOARD_CLOCK / 115200);
  UART->control = UART_ENABLED | UART_INTERRUPTS;
}

void board_send(unsigned char byte) {
  while (UART->state & UART_FULL) continue;
  UART->data = byte;
}

unsigned char board_receive(void) {
  while (!(UART->state & UART_ARRIVED)) {
    board_quiet(), core_forget();
    if (!(UART->state & UART_ARRIVED)) core_wait();
  }
  return (unsigned char)UART->data;
}

void board_quiet(void) { UART->interrupt = 3; }
