// Package rewrite holds the passes over operators, one per file: each turns a graph into an equivalent one with
// fewer or better kernels. Passes query operators for traits (op.Traits), and for names only to recognise patterns
// of particular operators. To add a pass, write a func(*graph.Graph) in its own file and list it in Passes,
// which is the place to start reading.
//
// Partition follows the passes and the placement of values: it groups the operators of a graph into kernels, in an
// order in which they can run. Each product or reduction includes elementwise operators after it (epilogue) and
// before it (prologue).
package rewrite
