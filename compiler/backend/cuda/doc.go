// Package cuda compiles candidates for NVIDIA GPUs: PTX with a table of launches, which the measuring machine treats
// as data, and the harness that makes the driver run it. Neither build needs an NVIDIA library. Start with Backend.
package cuda
