// Package results keeps what benchmarks measured in the tree: a folder for each kind of machine, with a file for each
// benchmark, a row of JSON a line. Machines differ in their engines, and the tables show the newest row of each, so
// that what one machine showed is not lost when the next has other ones.
package results
