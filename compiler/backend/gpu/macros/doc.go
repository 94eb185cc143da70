// Package macros defines the macros that kernels for GPUs are printed in, for each kind of device. One target is a CPU
// simulation of a GPU, which detects mistakes that a GPU does not report. words.go lists the macros. Kernels
// use only scalar C and these macros, so that one text serves all devices. Start with simulated/words.h;
// simulated/block.h runs a block.
package macros
