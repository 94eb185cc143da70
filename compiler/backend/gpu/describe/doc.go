// Package describe describes candidates for GPUs by numbers that a learnt cost model reads: columns over the analysis
// of package cost. Numbers that range widely are logarithms, and what depends on the card is a ratio to what it could
// do, so that one model serves cards of one make. docs/features.md says what each means. Begin with columns.go.
package describe
