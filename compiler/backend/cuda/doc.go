// Package cuda makes candidates for NVIDIA's GPUs: PTX with a table of launches, which is data to the machine that
// measures it, and the harness that has the driver run it. No library of NVIDIA's is needed to build either. Begin
// with Backend.
package cuda
