// Package board is the backend for microcontrollers: 32-bit processors that run one program without an operating
// system. Kernels are those of package cpu. A model becomes an archive of C source that is compiled into a firmware.
package board
