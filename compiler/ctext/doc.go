// Package ctext prints scalar expressions as C, or a language like it: types, literals, operators, casts, and helper
// functions for what C leaves open or does otherwise than package expr says. What prints kernels has a Scalars with
// its own names of variables and buffers. Begin to read at Scalars.
package ctext
