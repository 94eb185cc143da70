// Package progress summarises a job's events for displays, tables and logs. It depends on the wire, but not on
// a terminal. Start with Tally.
package progress
