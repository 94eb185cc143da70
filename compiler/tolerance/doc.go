// Package tolerance measures the error of a program's outputs against float32 with direct sums, and computes the
// allowed error given the rounding of its kernels. It also defines the tolerances for the verification of single
// kernels. Start with Relative, Bound and Tolerances.
package tolerance
