// Package telemetry exports the tracker's metrics: counters of the state machine's facts, and collectors that read
// figures on demand. It changes nothing, and reads only what Sources provides. docs/metrics.md has a row for each
// metric.
package telemetry
