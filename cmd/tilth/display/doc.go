// Package display shows the progress of a job on a terminal, live or line by line, and draws its curve of latencies.
package display
