// Package tolerance measures the error of a program's outputs against float32 with direct sums, and computes the
// allowed error given the rounding of its kernels. It also defines the tolerances for the verification of single
// kernels. Relative, Bound and Tolerances are the entry points.
package tolerance
