// Package rewrite has the passes over operators, a file each: a graph becomes another that computes the same with
// fewer or better kernels. Passes ask operators for traits (op.Traits), and for their names only where they recognise
// a pattern of certain operators. To add one, write func(*graph.Graph) error in a file of its own, and list it in
// passes.go, where to begin to read.
package rewrite
