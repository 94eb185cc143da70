// Package toolchain compiles C: it finds a compiler, runs it in a sandbox within limits, and says whose fault a
// failure is. Begin with Find and Toolchain.
package toolchain
