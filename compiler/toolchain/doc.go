// Package toolchain compiles C: it finds a compiler, runs it within limits and tells whose fault a failure is.
package toolchain
