// Package telemetry provides the metrics of agents, as decorators of their parts: the connection, the
// handler, the host lock and the reports.
package telemetry
