// Package telemetry has the tracker's metrics: those that count facts of the state machine as they happen, and
// collectors that ask for figures when somebody looks. It changes nothing, and knows of others only what Sources
// names. docs/metrics.md has a row for each metric.
package telemetry
