// Package calibration times two fixed kernels, one bound by the processor and one by memory, to detect drift
// of a device. It needs no compiler and no artifact, because the kernels are part of the program. Start with
// Run.
package calibration
