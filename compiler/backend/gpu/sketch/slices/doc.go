// Package slices is the sketch of long sums whose results share nothing, such as products of a matrix and a vector:
// the threads of a block have a few results together, of whose sums each adds up a slice. Begin to read at New.
package slices
