// Package replay compares searches without a device. A set holds what was measured of every candidate of a part of one
// workload's space, so that any search may propose what it likes and hears what a device said; Evaluate runs searches
// on sets and tells how many trials they take.
package replay
