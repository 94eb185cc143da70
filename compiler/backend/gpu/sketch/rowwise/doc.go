// Package rowwise is the sketch of stages that a block of a GPU's threads computes row by row: softmax, normalisation,
// reductions.
package rowwise
