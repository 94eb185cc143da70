// Package describe describes a scheduled candidate by numbers that a learnt cost model reads: columns over the
// analysis of package cost. Numbers that range widely are logarithms, and what depends on the machine is a ratio to
// what the machine could do, so that one model serves machines of one kind. Begin with columns.go.
//
// The choice of numbers follows Zheng et al., "Ansor: Generating High-Performance Tensor Programs for Deep Learning"
// (OSDI 2020), appendix B: arithmetic by kind, annotations, accesses of buffers with their reuse, and the curve of
// arithmetic intensity. What they take from lowered programs is computed here from the loops of each statement.
package describe
