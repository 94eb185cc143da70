// Package describe describes a scheduled candidate by numbers that a learnt cost model reads. They come from the
// stages of the schedule, without lowering it: what part of each stage is computed where and how often follows from
// the accesses' coefficients; a simple model of a core and its caches turns that into instructions, lines and cycles.
// Numbers that range widely are logarithms, and what depends on the machine is a ratio to what the machine could do,
// so that one model serves machines of one kind.
//
// The choice of numbers follows Zheng et al., "Ansor: Generating High-Performance Tensor Programs for Deep Learning"
// (OSDI 2020), appendix B: arithmetic by kind, annotations, accesses of buffers with their reuse, and the curve of
// arithmetic intensity. What they take from lowered programs is computed here from the loops of each statement.
package describe
