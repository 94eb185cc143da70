// Package toolchain compiles C: it finds a compiler, runs it in a sandbox within limits, and classifies failures.
// Find and Toolchain are the entry points.
package toolchain
