// Package rows finds workloads whose stages can be computed row by row, whatever device they are for. Begin with
// Match.
package rows
