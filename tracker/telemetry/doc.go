// Package telemetry exports the tracker's metrics: event counters and on-demand collectors. It changes nothing, and
// reads only what Sources provides. docs/metrics.md has a row for each metric.
package telemetry
