// Package reference is a backend that computes every workload in plain scalar C, whatever the schedule: what
// candidates of other backends are verified against. It has one candidate for each workload. Packages compiled by it
// are slow, and as right as rounding lets them be: sums are taken in double.
package reference
