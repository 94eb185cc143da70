// Package searchspace defines the sets of candidates that searches explore, for any device. A Family has knobs, its
// open numbers; it checks their values, estimates their cost, and applies them. A Sketch is a family derived from the
// parameters of a loop structure; user kernels can be families as well. A Space combines one or more families of
// different algorithms; a point chooses a value for each knob. Points of all families are drawn, mutated, crossed,
// counted, printed and parsed here.
package searchspace
