/* Arm's MPS3 board with the image AN547, a Cortex-M55, which starts in its secure state. */
#ifndef TILTH_BOARD_H
#define TILTH_BOARD_H

#define BOARD_NAME "mps3-an547"
#define BOARD_CLOCK UINT64_C(32000000)
#define BOARD_UART 0x59303000u
/* Part of its DDR4 that the secure state has. */
#define BOARD_MEMORY 0x70000000u
#define BOARD_MEMORY_BYTES 0x1000000u

#endif
