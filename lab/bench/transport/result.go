package main

import (
	"fmt"
	"time"
)

// result is what a run showed.
type result struct {
	name          string
	took          time.Duration
	meter         *meter // closed
	before, after usage
	// agentsCPU is the processor time of all agents, in seconds.
	agentsCPU float64
}

// heading is that of a table of results.
const heading = `| variant | results/s | short calls p50, p99, ms | grants p50, p99, ms | memory, at most, MiB | goroutines | stacks, MiB | objects | ` +
	`server's, agents' processor time for a call, us | collections/s |
|---|---|---|---|---|---|---|---|---|---|`

// row is a result as a row of the table.
func (r result) row() string {
	seconds := r.took.Seconds()
	calls := float64(len(r.meter.short) + len(r.meter.grants))
	cpu := r.after.CPU - r.before.CPU
	return fmt.Sprintf("| %s | %.0f | %s | %s | %d | %d | %d | %d | %.0f, %.0f | %.2f |",
		r.name, float64(r.meter.results)/seconds, ends(r.meter.short), ends(r.meter.grants),
		r.after.PeakRSSBytes>>20, r.after.Goroutines, r.after.StackBytes>>20, r.after.Objects,
		cpu/calls*1e6, r.agentsCPU/calls*1e6,
		float64(r.after.Collections-r.before.Collections)/seconds)
}

// ends are a median and a 99th percentile, in milliseconds.
func ends(times []time.Duration) string {
	ms := func(part float64) float64 { return float64(quantile(times, part)) / float64(time.Millisecond) }
	return fmt.Sprintf("%.1f, %.0f", ms(0.5), ms(0.99))
}
