// Package record makes the sets that searches are compared on: it builds, verifies and times every candidate of a part
// of a workload's space on this machine, the way a trial of a tuning job is.
package record
