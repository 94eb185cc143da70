// Package codegen prints kernels for GPUs: launches in the macros of package macros, which are defined for every
// kind of device, and the table of launches for the host. Start with Lower and Kernels.
package codegen
