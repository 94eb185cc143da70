// Package refusal defines the errors with which the tracker refuses requests, independent of transport. Each has a
// text and a kind from which the caller can tell how to proceed. Package services converts them to gRPC statuses.
package refusal
