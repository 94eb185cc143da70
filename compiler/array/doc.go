// Package array holds dense tensors: an element type, a shape and raw bytes. It knows nothing of the compiler.
package array
