// Package cost says what kernels ask of a GPU, launch by launch: threads, registers and shared memory; operations by
// kind; what moves between the memories, in the units that the hardware moves; and about how long all of it takes. It
// reads programs whose launches are made but not yet proved: proofs of ownership and barriers take most of the time of
// lowering, and cost models ask about hundreds of candidates for each that is built.
//
// Indices are not analysed but tried: in a few places of the loops around an access, the addresses of a warp's threads
// are computed, and counted as the hardware does. What is exact says so; all else are estimates. Begin to read at
// analysis.go.
package cost
