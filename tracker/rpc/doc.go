// Package rpc implements the tracker's gRPC services, a file per group of calls. A call validates its request, has the
// coordinator run an operation of the state machine or reads the store, and builds the response. File status.go maps
// refusals to gRPC statuses. Scheduling rules live in packages state and policy.
package rpc
