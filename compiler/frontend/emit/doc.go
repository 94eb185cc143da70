// Package emit makes the program of a graph that was cut into kernels: the tensor expressions of each kernel as a
// workload, kernels of equal workloads as one task, and the calls with the values that they read and write. Begin to
// read at emit.go.
package emit
