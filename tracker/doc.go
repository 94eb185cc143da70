// Package tracker is the holder of the farm's state: jobs, tasks, batches and leases. It is a state machine in memory
// over a records file; agents and clients speak to it over gRPC.
//
// Every call follows one path (see change): under one lock it checks its request, changes the memory and hands the
// same change to the store; it answers when that is on disk. Changes reach the disk in the order in which they were
// made, so nothing that was answered can depend on something that is lost. The tracker never looks inside a workload,
// a trace or an artifact.
package tracker
