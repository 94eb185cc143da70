// Package array provides dense tensors: an element type, a shape and raw bytes. It does not depend on the compiler.
package array
