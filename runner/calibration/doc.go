// Package calibration times two pieces of fixed work, one bound by the processor and one by memory, by which drift of
// a device can be told. It needs no compiler and no artifact: the work is the program's own. Begin with Run.
package calibration
