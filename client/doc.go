// Package client is what asks a tracker for something from outside the farm: it submits jobs, follows them through
// restarts and broken connections, and reads devices and records.
package client
