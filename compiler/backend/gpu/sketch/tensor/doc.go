// Package tensor is the sketch of products on a GPU whose instructions multiply matrices: a block computes a tile of
// the results, of which each warp has a part in the registers of its threads, and reads its operands through shared
// memory. Begin to read at New.
package tensor
