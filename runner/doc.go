// Package runner measures candidates on a device: it downloads what a builder compiled, verifies and times each
// candidate in a harness process, and reports the measurements.
package runner
