// Package winograd is the sketch of convolutions by Winograd's algorithm, for several sizes of its tiles.
package winograd
