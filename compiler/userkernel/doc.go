// Package userkernel defines kernels that users write by hand: a directory with C source, knobs with their values, a
// legality condition on these values, and the workloads that the kernel computes. Start with Read.
package userkernel
