// Package program represents models as programs: values in memory, and calls of kernels on them. The front end
// generates programs, and packages are compiled from them. It depends on workloads (package expr), but not on
// operators or devices. Start with Program.
package program
