// Package across is the pass that sums up along the lanes of vectors: each step of a reduction along a vectorized loop
// combines the lanes of its term first.
package across
