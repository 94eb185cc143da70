// Package layout assigns memory to values: the order of their axes, and which of them are views or parts of others, so
// that data movement costs no pass over memory. It works on graphs before they are partitioned into kernels, and later
// stages query it for the layout and storage of a value. Start with Passes, which lists the passes, and Place.
package layout
