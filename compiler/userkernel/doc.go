// Package userkernel defines kernels that users write by hand: a folder with C source, knobs with their values, the
// condition under which a choice of values is legal, and the workloads that the kernel computes. Begin with Read.
package userkernel
