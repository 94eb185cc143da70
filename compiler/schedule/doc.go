// Package schedule says how a workload is computed: each computed tensor is a stage with a nest of iterators, and
// primitives transform the nests. Every primitive checks its own legality and is recorded in a trace, which replays
// without the code that invented it.
//
// The primitives follow Halide and TVM's te: split, fuse, reorder, compute-at, inline, cache-write, cache-read,
// flatten, rfactor, pack, prefetch, fetch, parallel, vectorize, unroll, trim, stream, and widen and dot for products
// of small integers. Stages and iterators are named by number: stages in the workload's order, then those that
// cache-write, cache-read, widen and rfactor add; iterators of a stage by axis (spatial axes first), then in order of
// creation.
package schedule
