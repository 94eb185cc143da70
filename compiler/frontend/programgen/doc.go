// Package programgen generates the program of a graph that was partitioned into kernels: each kernel's tensor
// expressions as a workload, kernels with equal workloads as one task, and the calls with the values that they read
// and write. Start with Program and Open.
package programgen
