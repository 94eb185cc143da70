// Package packing lays constants out as kernels read them: what a layout holds, how to compute it in Go, and the
// kernel that does the same.
package packing
