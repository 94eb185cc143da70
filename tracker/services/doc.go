// Package services are the tracker's gRPC services, a file for each call. A call checks its request, has the
// engine run an operation of the state machine or reads the store, and makes an answer of it; what a refusal is on the
// wire is in status.go. No rule of the farm is here.
package services
