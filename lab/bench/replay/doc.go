// Package replay compares cost models and searches on recorded measurements, without a device.
//
// A Recorder measures sets: all schedules of a part of a task's space, or a sample of the whole space.
// CompareModels reports how well cost models rank the candidates of unseen tasks. CompareSearches replays searches.
package replay
