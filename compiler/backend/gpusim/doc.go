// Package gpusim is a backend that simulates a GPU on a processor. It detects mistakes in kernels, such as a missing
// barrier, that a GPU does not report. Its measurements do not predict a GPU's speed. It is for tests and for authors
// of such kernels.
package gpusim
