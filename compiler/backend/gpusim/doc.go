// Package gpusim is a backend whose GPU is played by a processor: it finds mistakes in kernels for GPUs, such as a
// missing barrier, that a GPU does not tell. What it measures says nothing of a GPU's speed. It is for tests, and for
// those who write such kernels.
package gpusim
