// Package meter counts what an agent does, by standing around the parts that it is made of: its connection, its
// handler, its waits for the host's lock, its reports.
package meter
