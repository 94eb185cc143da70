// Package record makes the sets that searches are compared on. On this machine it builds, verifies and times every
// candidate of a part of a workload's space, as a tuning job does. Begin with Recorder.
package record
