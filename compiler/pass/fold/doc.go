// Package fold is the pass that finds sums of neighbouring elements, which vectors load one by one from far apart, so
// that they can be added in registers.
package fold
