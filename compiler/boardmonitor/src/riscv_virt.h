/* QEMU's machine virt for RISC-V. Its counter counts nanoseconds, of which -icount makes one an instruction. */
#ifndef TILTH_BOARD_H
#define TILTH_BOARD_H

#define BOARD_NAME "riscv32-virt"
#define BOARD_CLOCK UINT64_C(1000000000)
/* A tick of the timer is at least 1 << this of the counter's. */
#define BOARD_TIMER_SHIFT 6
#define BOARD_UART 0x10000000u
#define BOARD_CLINT 0x02000000u
#define BOARD_PLIC 0x0c000000u
#define BOARD_UART_INTERRUPT 10
#define BOARD_MEMORY 0x81000000u
#define BOARD_MEMORY_BYTES 0x1000000u

#endif
