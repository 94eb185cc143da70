// Package codegen prints kernels for GPUs: launches in the words of package dialect, which mean the same on every kind
// of device, and the table that tells a host how to launch them. Begin to read at Lower and Print.
package codegen
