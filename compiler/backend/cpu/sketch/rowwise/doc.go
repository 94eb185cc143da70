// Package rowwise is the sketch of stages that are computed row by row: softmax, normalisation, reductions.
package rowwise
