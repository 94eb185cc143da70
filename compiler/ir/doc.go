// Package ir is the form of kernels between schedules and source text: nests of loops over flat buffers. Package lower
// makes it from a schedule; each package below pass changes it; a backend prints it. Begin to read at Func.
package ir
