// Package tracker is the holder of the farm's state: jobs, tasks, batches and leases; agents and clients speak to it
// over gRPC. This package puts its rooms together, and closes them to whoever may not come in (see security.go).
//
// tracker/state is the state machine, alone. tracker/policy has the rules that are decided by figures: whose turn it
// is, what an owner may have, what a calibration says. tracker/engine runs the machine over a store. tracker/services
// translates between it and the wire, a file for each call. tracker/telemetry counts, tracker/web serves the page, and
// tracker/upkeep looks after the records file. Arrows go from services, telemetry and web to the engine, from there to
// the state, and from there to policy. The tracker never looks inside a workload, a trace or an artifact.
package tracker
