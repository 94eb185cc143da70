// Package tolerance says how far what a kernel computes may be from what its reference does, by the types of the
// workload's tensors and the lengths of its sums. Whoever verifies kernels asks here, on whatever device they run.
// Begin to read at tolerance.go.
package tolerance
