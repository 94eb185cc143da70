// Package vta generates code for a simulated accelerator with explicit memory: a matrix unit and vector lanes that
// compute on scratchpads, which a load and a store unit fill and empty. The units run independently, ordered by
// tokens. Operators that the accelerator lacks run on the host. An instruction's meaning selects it for loops, and is
// what the simulator executes. Start with Backend; docs/accelerators.md explains how to write such a package.
package vta
