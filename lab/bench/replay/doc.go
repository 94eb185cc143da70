// Package replay provides recorded sets: measurements of every candidate in a part of a workload's space. Searches
// can be compared on them without a device, because a set answers every proposal. Package record creates sets,
// package contest runs searches on them. Start with Set.
package replay
