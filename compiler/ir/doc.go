// Package ir is the representation of kernels between schedules and source text: nests of loops over flat buffers.
// Package lower creates it from a schedule, the passes of package pass transform it, and a backend prints it. Start
// with Func.
package ir
