// Package layout assigns memory to values: the order of their axes, and which of them are views or parts of
// others, so that data movement costs no pass over memory. It works on graphs before they are partitioned into
// kernels, and later stages query it for the place of a value. Passes lists the passes; Place describes a place.
package layout
