// Package jitlink is a command that makes code for NVIDIA's cards of PTX, where there is no ptxas, by their library
// nvJitLink: the same assembler in another shape, which comes with CUDA 12.3 and later, and with PyTorch's packages.
// The library is opened by a process of its own, so that what goes wrong in it ends that process alone.
package jitlink
