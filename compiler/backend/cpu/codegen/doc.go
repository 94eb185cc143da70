// Package codegen prints lowered kernels as C with vector types and named accumulators. Compilers turn this form into
// code that reaches the machine's peak. The passes in package pass, listed in passes.go, define semantics; the printer
// only chooses names and C syntax. cruntime/src/tilth_kernel.h defines the contract of the printed functions. Start
// with passes.go, then read printer.go.
package codegen
