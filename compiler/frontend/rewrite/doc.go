// Package rewrite holds the passes over operators, one per file: each turns a graph into an equivalent one with
// fewer or better kernels. Passes query operators for traits (op.Traits), and for names only to recognise patterns
// of particular operators. To add a pass, write a func(*graph.Graph) error in its own file and list it in Passes,
// which is the place to start reading.
package rewrite
