// Package calibration times two pieces of fixed work, one bound by the processor and one by the memory, so that
// whoever keeps the times can tell that a device is not what it was. It needs no compiler and no artifact: the work is
// the program's own.
package calibration
