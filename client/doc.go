// Package client is what somebody outside the farm asks of a tracker: submitting jobs, following them through restarts
// and broken connections, reading devices and records, running packages. It knows the wire, and no services. Begin
// with Client.
package client
