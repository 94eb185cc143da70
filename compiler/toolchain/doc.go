// Package toolchain compiles C: it finds a compiler, runs it in a sandbox within limits, and classifies failures.
// Start with Find and Toolchain.
package toolchain
