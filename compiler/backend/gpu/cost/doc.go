// Package cost estimates the demands of kernels on a GPU, launch by launch: threads, registers and shared memory;
// operations by kind; data moved between the memories, in the hardware's units; and the resulting time. It reads
// programs after launches are formed but before verification, whose ownership and barrier checks dominate lowering
// time: cost models evaluate hundreds of candidates for each one that is built.
//
// Indices are sampled rather than analysed: at a few points of the loops around an access, the addresses of a warp's
// threads are computed and counted as the hardware does. Exact figures are documented as such; all others are
// estimates. Start with analysis.go.
package cost
