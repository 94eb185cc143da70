// Package state is the tracker's state machine: jobs, batches, leases, agents and devices in memory. It does no I/O,
// starts no goroutines and takes its clocks from its caller. It has no lock: the caller must serialize all calls.
//
// An operation is a method of Change. It checks everything before it changes anything, returns its decision, and adds
// to the change's effects: rows to store, events to publish and leases granted (see Effects). The caller carries out
// the effects in order and answers only after the write is on disk, so no answer can depend on lost state. Operations
// are refused with a Refusal. Pure policies live in tracker/policy. Start reading at Machine, Change and Effects, then
// job.go, batch.go and lease.go.
package state
