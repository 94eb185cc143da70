// Package fakedriver is a library that stands in for the driver of NVIDIA's GPUs where there is none, in tests of
// what calls the driver. It is a fake: memory is the host's, kernels are played by the simulated GPU, since it cannot
// run PTX, and its errors are made. Begin with Make.
package fakedriver
