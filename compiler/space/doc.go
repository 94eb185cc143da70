// Package space is the sets of candidates that searches move about in, whatever device they are for and whoever made
// them. A Family has knobs, the numbers that it leaves open, says which of their values are legal and what they cost,
// and applies them; a Sketch is a family by the parameters of a structure of loops, and kernels that are written by
// hand can be one as well. A Space is one family, or several of different algorithms; a point chooses a value for each
// knob. Points are drawn, changed, crossed, counted, printed and read here, in the same way for all.
package space
