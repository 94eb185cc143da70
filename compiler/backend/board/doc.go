// Package board is the backend for microcontrollers: processors of 32 bits that run one program and no operating
// system. Kernels are those of package cpu. A model becomes an archive of C source, which is compiled into a firmware.
package board
