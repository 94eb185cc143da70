// Package reference is a backend that computes every workload in plain scalar C, regardless of the schedule.
// Candidates of other backends are verified against it. Each workload has one candidate. Its packages are slow, and
// as exact as rounding allows: sums are in double.
package reference
