// Package telemetry is the metrics of an agent. Decorators around its parts count what they do: its connection, its
// handler, its waits for the host's lock, its reports.
package telemetry
