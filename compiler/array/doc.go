// Package array holds dense tensors as the compiler passes them around: an element type, a shape and raw bytes.
package array
