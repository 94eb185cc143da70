// Package accuracy says how far a program's outputs are from those of another that computes the same in float32 and by
// direct sums, and how far they may be by what its kernels round. Begin to read at compare.go.
package accuracy
