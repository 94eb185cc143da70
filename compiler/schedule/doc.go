// Package schedule describes how a workload is computed. Each computed tensor is a stage with a nest of iterators,
// and primitives transform the nests. Every primitive checks its own legality and is recorded in a trace, which can
// be replayed without the code that produced it.
//
// The primitives follow Halide and TVM's te: split, fuse, reorder, compute-at, inline, cache-write, cache-read,
// flatten, rfactor, pack, prefetch, fetch, parallel, vectorize, unroll, trim, stream, and widen and dot for
// products of small integers. Stages and iterators are identified by number. Stages are numbered in the workload's
// order, followed by those that cache-write, cache-read, widen and rfactor add. Iterators of a stage are numbered
// by axis (spatial axes first), then in order of creation.
package schedule
