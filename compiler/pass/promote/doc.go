// Package promote is the pass that keeps scratch buffers in registers: an unrolled tile of accumulators becomes named
// vector variables.
package promote
