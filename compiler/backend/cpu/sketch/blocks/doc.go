// Package blocks is the sketch of products with weights that are quantised by blocks: codes stay packed until they are
// in registers, and sums of blocks are scaled once.
package blocks
