/* Arm's MPS2 board with the image AN500, a Cortex-M7. */
#ifndef TILTH_BOARD_H
#define TILTH_BOARD_H

#define BOARD_NAME "mps2-an500"
#define BOARD_CLOCK UINT64_C(25000000)
#define BOARD_UART 0x40004000u
/* The board's PSRAM. */
#define BOARD_MEMORY 0x60000000u
#define BOARD_MEMORY_BYTES 0x1000000u

#endif
