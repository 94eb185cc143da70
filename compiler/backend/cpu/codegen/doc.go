// Package codegen prints lowered kernels as C with vector types and named accumulators, the form that compilers turn
// into code at the machine's peak. The contract of the printed functions is abi/tilth_kernel.h.
package codegen
