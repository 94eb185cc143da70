// Package codegen prints lowered kernels as C with vector types and named accumulators, the form that compilers turn
// into code at the machine's peak. What a kernel does is decided by the passes that passes.go lists, each of them in
// package pass; the printer has names, indentation, and the forms of C. The contract of the printed functions is
// abi/tilth_kernel.h. Begin to read at passes.go, then at printer.go.
package codegen
