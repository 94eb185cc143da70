// Package record records the sets on which searches are compared. It builds, verifies and times every candidate in a
// part of a workload's space on this machine, like a tuning job. Start with Recorder.
package record
