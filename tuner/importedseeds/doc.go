// Package importedseeds stores schedules that other compilers chose, as starting points of searches. A seed has tiles
// and no latency, because another compiler's measurements do not apply to the code generated here. It belongs
// to an operator, and thus to each workload whose heaviest sum is that operator. Start with File and Points.
package importedseeds
