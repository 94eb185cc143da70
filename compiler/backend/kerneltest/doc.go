// Package kerneltest helps tests of code generators: it draws workloads, runs kernels of schedules by a driver in C,
// and compares their outputs with the evaluator's. Begin to read at Case.
package kerneltest
