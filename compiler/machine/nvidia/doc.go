// Package nvidia lists the instructions of NVIDIA's GPUs. Their C code consists of the macros of package macros.
package nvidia
