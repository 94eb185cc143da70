// Package tracker holds the farm's state: jobs, tasks, batches and leases. Agents and clients reach it over gRPC. This
// package assembles the subpackages and adds access control (see security.go).
//
// Package state is the bare state machine. Package policy holds pure rules: fair queueing, quotas, cooldowns,
// retention and the judgement of calibrations. Package engine runs the machine over a store. Package services
// translates between the machine and the wire, one file per call. Package telemetry exports metrics, web serves the
// pages, and upkeep maintains the records file. Dependencies point from services, telemetry and web to engine, from
// there to state, and from there to policy. The tracker never looks inside a workload, a trace or an artifact.
package tracker
