// Package target describes what kernels are compiled for: a device of some kind, and the compiler.
package target
