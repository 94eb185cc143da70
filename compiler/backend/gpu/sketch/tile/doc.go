// Package tile is the sketch of products on a GPU without tensor cores: a block computes a tile of the results, of
// which each thread keeps a part in registers, and reads its operands through shared memory.
package tile
