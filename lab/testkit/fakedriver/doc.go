// Package fakedriver provides a fake of NVIDIA's driver library, for tests on machines without a GPU. Memory is the
// host's, and the simulated GPU executes kernels instead of PTX. Tests inject errors. Start with Make.
package fakedriver
