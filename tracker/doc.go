// Package tracker holds the farm's state: jobs, tasks, batches and leases. Agents and clients reach it over gRPC. This
// package assembles the subpackages and adds access control (see security.go).
//
// Package state is the state machine. Package policy implements pure rules: fair queueing, quotas, cooldowns,
// retention and drift detection. Package coordinator runs the machine over a store. Package rpc translates between the
// machine and the wire, a file per group of calls. Package telemetry exports metrics, web serves the pages, and Upkeep
// maintains the records file. Dependencies point from rpc, telemetry and web to coordinator, from there to state, and
// from there to policy. The tracker never looks inside a workload, a trace or an artifact.
package tracker
