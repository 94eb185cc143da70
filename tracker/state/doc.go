// Package state is the tracker's state machine: jobs, batches, leases, agents and devices in memory. It knows no
// transport, no metrics, no files and no goroutines; its clocks are told to it, and it has no lock: one call at a time
// is its caller's to see to.
//
// An operation is a method of Change. It checks everything before it changes anything, returns its decision, and adds
// to the change's effects: what is to be stored, who is to be told, which leases were granted (see Effects). The
// caller carries these out, in order, and answers when the write is on disk; so nothing that was answered can depend
// on something that is lost. Refusals are errors of package refusal. What must be waited for or decided by figures
// alone is in tracker/policy. Begin with Machine, Change and Effects, then job.go, batch.go and lease.go.
package state
