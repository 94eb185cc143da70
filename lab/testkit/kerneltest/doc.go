// Package kerneltest supports tests of code generators. It draws workloads, runs kernels of schedules with a driver
// in C, and compares their outputs with the evaluator's. Start with Case.
package kerneltest
