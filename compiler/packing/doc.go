// Package packing lays constants out as kernels read them: it describes a layout, fills it in Go, and makes the kernel
// that does the same.
package packing
